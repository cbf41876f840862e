import { AidoError } from "@aido/sdk/protocol";
import type { ContainerSpec } from "../../core/driver/driver.ts";
import { CONFLICT, ignoring, NOT_FOUND, statusOf } from "./answer-status.ts";
import type { Engine } from "./engine.ts";
import { LABEL } from "./labels.ts";

export function ownNetworkName({ name }: Pick<ContainerSpec, "name">): string {
  return `${name}-net`;
}

/**
 * A bridge for one sandbox. The engine lets nothing pass between bridges, so that sandboxes on bridges of their own do
 * not reach each other. What a dead process left of ours under that name is replaced; what is not ours is refused.
 */
export async function makeOwnNetwork(
  engine: Engine,
  spec: ContainerSpec,
  scope: string,
  signal?: AbortSignal,
): Promise<void> {
  const name = ownNetworkName(spec);
  // Who has the name is asked only when somebody has.
  const taken = await createNetwork(engine, spec, scope);
  if (taken !== undefined) {
    const before = await ownNetworks(engine, scope, { name });
    if (!before.some(({ sandboxId }) => sandboxId === spec.sandboxId)) {
      // One that is in use stays, and makes the name one that is taken.
      for (const { id } of before) await removeNetwork(engine, id).catch(() => undefined);
      const still = await createNetwork(engine, spec, scope);
      if (still !== undefined) throw nameTaken(name, spec.sandboxId, still);
    }
  }
  signal?.throwIfAborted();
}

/** What the engine says when the name is taken. Not given up half-way: what an engine makes for a request that has gone away, nobody would remove. */
async function createNetwork(engine: Engine, spec: ContainerSpec, scope: string): Promise<Error | undefined> {
  const Name = ownNetworkName(spec);
  return await engine.call(
    { doing: `creating the network ${Name}`, code: "CONTAINER_CREATION_FAILED", sandboxId: spec.sandboxId },
    () =>
      engine.docker
        .createNetwork({
          Name,
          CheckDuplicate: true,
          Driver: "bridge",
          Attachable: false,
          Labels: { ...spec.labels, [LABEL.sandbox]: spec.sandboxId, [LABEL.scope]: scope },
        })
        .then(
          () => undefined,
          (thrown: unknown) => {
            if (statusOf(thrown) === CONFLICT) return thrown as Error;
            throw thrown;
          },
        ),
  );
}

function nameTaken(name: string, sandboxId: string, cause: unknown): AidoError {
  return new AidoError("CONTAINER_NAME_TAKEN", `Another network is named ${name}`, {
    hint: `Look at it with \`docker network inspect ${name}\`, and remove it if nobody needs it.`,
    details: { sandboxId, network: name },
    cause,
  });
}

/** Idempotent. */
export async function removeOwnNetworks(engine: Engine, scope: string, sandboxId: string): Promise<void> {
  for (const { id } of await ownNetworks(engine, scope, { sandboxId })) await removeNetwork(engine, id);
}

async function ownNetworks(
  engine: Engine,
  scope: string,
  which: { name?: string; sandboxId?: string },
): Promise<{ id: string; sandboxId: string | undefined }[]> {
  const { name, sandboxId } = which;
  const label = [sandboxId === undefined ? LABEL.sandbox : `${LABEL.sandbox}=${sandboxId}`];
  const filters = { label: [...label, `${LABEL.scope}=${scope}`], ...(name && { name: [name] }) };
  const found = await engine.call({ doing: "listing networks" }, (abortSignal) =>
    engine.docker.listNetworks({ filters: { ...filters }, abortSignal }),
  );
  // The engine's filter finds names that merely hold the one that is asked for.
  return found
    .filter((network) => name === undefined || network.Name === name)
    .map((network) => ({ id: network.Id, sandboxId: network.Labels?.[LABEL.sandbox] }));
}

async function removeNetwork(engine: Engine, id: string): Promise<void> {
  const network = engine.docker.getNetwork(id);
  await engine.call(
    { doing: "removing the sandbox's network", code: "CONTAINER_REMOVAL_FAILED" },
    (abortSignal) => network.remove({ abortSignal }).catch(ignoring(NOT_FOUND)),
  );
}
