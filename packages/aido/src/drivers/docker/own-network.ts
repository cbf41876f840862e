import { AidoError } from "@aido/sdk/protocol";
import type { ContainerSpec } from "../../core/driver/driver.ts";
import { CONFLICT, ignoring, NOT_FOUND } from "./answer-status.ts";
import type { Engine } from "./engine.ts";
import { LABEL } from "./labels.ts";

export function ownNetworkName({ name }: Pick<ContainerSpec, "name">): string {
  return `${name}-net`;
}

/**
 * A bridge for one sandbox; says its id. The engine lets nothing pass between bridges, so that sandboxes on bridges of
 * their own do not reach each other. What a dead process left of ours under that name is replaced; what is not ours is
 * refused.
 */
export async function makeOwnNetwork(
  engine: Engine,
  spec: ContainerSpec,
  scope: string,
  signal?: AbortSignal,
): Promise<string> {
  const id = (await createNetwork(engine, spec, scope)) ?? (await takeName(engine, spec, scope));
  signal?.throwIfAborted();
  return id;
}

/** Who has the name is asked only when somebody has. */
async function takeName(engine: Engine, spec: ContainerSpec, scope: string): Promise<string> {
  const name = ownNetworkName(spec);
  const before = (await ownNetworks(engine, scope)).filter((network) => network.name === name);
  const own = before.find(({ sandboxId }) => sandboxId === spec.sandboxId);
  if (own !== undefined) return own.id;
  // One that is in use stays, and makes the name one that is taken.
  for (const { id } of before) await removeNetwork(engine, id).catch(() => undefined);
  const made = await createNetwork(engine, spec, scope);
  if (made === undefined) throw nameTaken(name, spec.sandboxId);
  return made;
}

/** Undefined when the name is taken. Not given up half-way: what an engine makes for a request that has gone away, nobody would remove. */
async function createNetwork(
  engine: Engine,
  spec: ContainerSpec,
  scope: string,
): Promise<string | undefined> {
  const Name = ownNetworkName(spec);
  return await engine.call(
    { doing: `creating the network ${Name}`, code: "CONTAINER_CREATION_FAILED", sandboxId: spec.sandboxId },
    async () => {
      const made = await engine.docker
        .createNetwork({
          Name,
          CheckDuplicate: true,
          Driver: "bridge",
          Attachable: false,
          Labels: { ...spec.labels, [LABEL.sandbox]: spec.sandboxId, [LABEL.scope]: scope },
        })
        .catch(ignoring(CONFLICT));
      return made?.id;
    },
  );
}

function nameTaken(name: string, sandboxId: string): AidoError {
  return new AidoError("CONTAINER_NAME_TAKEN", `Another network is named ${name}`, {
    hint: `Look at it with \`docker network inspect ${name}\`, and remove it if nobody needs it.`,
    details: { sandboxId, network: name },
  });
}

/**
 * Idempotent. The engine may have made a second one of the same name, for a process that was killed while it asked. It
 * goes too once the sandbox's container is gone, to which the name belonged; before, it could be of one that is being made.
 */
export async function removeOwnNetworks(
  engine: Engine,
  scope: string,
  sandboxId: string,
  { hadContainer }: { hadContainer: boolean },
): Promise<void> {
  const all = await ownNetworks(engine, scope);
  const own = all.filter((network) => network.sandboxId === sandboxId);
  for (const { id } of own) await removeNetwork(engine, id);
  if (!hadContainer) return;
  const twins = all.filter(({ id, name }) => own.some((one) => one.name === name && one.id !== id));
  for (const { id } of twins) await removeNetwork(engine, id).catch(() => undefined);
}

async function ownNetworks(
  engine: Engine,
  scope: string,
): Promise<{ id: string; name: string; sandboxId: string | undefined }[]> {
  const filters = { label: [LABEL.sandbox, `${LABEL.scope}=${scope}`] };
  const found = await engine.call({ doing: "listing networks" }, (abortSignal) =>
    engine.docker.listNetworks({ filters, abortSignal }),
  );
  return found.map(({ Id, Name, Labels }) => ({ id: Id, name: Name, sandboxId: Labels?.[LABEL.sandbox] }));
}

async function removeNetwork(engine: Engine, id: string): Promise<void> {
  const network = engine.docker.getNetwork(id);
  await engine.call(
    { doing: "removing the sandbox's network", code: "CONTAINER_REMOVAL_FAILED" },
    (abortSignal) => network.remove({ abortSignal }).catch(ignoring(NOT_FOUND)),
  );
}
