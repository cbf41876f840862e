import { mkdir } from "node:fs/promises";
import { AidoError } from "@aido/sdk/protocol";
import type { ContainerSpec } from "../../core/driver/driver.ts";
import { agentArchive } from "./agent-archive.ts";
import type { Place } from "./container-index.ts";
import type { Engine } from "./engine.ts";
import { giveMounts } from "./give-mounts.ts";
import { provideHostsFile } from "./hosts-file.ts";
import type { Transport } from "./labels.ts";
import { makeOwnNetwork } from "./own-network.ts";
import { runtimeFor } from "./runtimes.ts";
import { ensureSharedNetwork } from "./shared-network.ts";
import { toContainerOptions } from "./to-container-options.ts";

export interface CreateOptions {
  readonly scope: string;
  readonly agentPath: string;
  readonly runDir: string;
  readonly hostsFile: string;
  readonly signal?: AbortSignal | undefined;
}

/** What the engine makes for a request that has gone away, nobody would remove. One that is well has answered by then. */
const CREATE_GRACE_MS = 5_000;
const DEFAULT_USER = { uid: 1000, gid: 1000 };
const ROOT = { uid: 0, gid: 0 };

/** Makes the container and says where it is. */
export async function createContainer(
  engine: Engine,
  spec: ContainerSpec,
  { scope, agentPath, runDir, hostsFile, signal }: CreateOptions,
): Promise<Place> {
  const { local } = engine.address;
  if (!local && spec.mounts.length > 0) {
    throw new AidoError(
      "UNSUPPORTED",
      `Docker at ${engine.address.text} cannot mount directories of this machine`,
      {
        hint: "Use an engine on this machine, or copy the files in after the sandbox is made.",
        details: { sandboxId: spec.sandboxId },
      },
    );
  }
  const info = await engine.info({ signal });
  const runtime = runtimeFor(spec.isolation, info.runtimes);
  if (runtime !== undefined && spec.network !== "none" && info.offlineRuntimes.includes(runtime)) {
    throw offlineRuntime(spec, runtime);
  }
  // The other runtimes have a kernel or a user namespace of their own, which a socket does not cross.
  const transport: Transport = info.sharesSockets && spec.isolation === "container" ? "socket" : "exec";
  if (transport === "socket") await mkdir(runDir, { recursive: true, mode: 0o700 });
  // Privileges are root's.
  const user = spec.user ?? (spec.privileged ? ROOT : hostUser());
  await giveMounts(spec.mounts, user);
  // The other runtimes, and engines elsewhere, set up the network `none` in their own ways.
  const hasLoopbackAlone = spec.network === "none" && local && spec.isolation === "container";
  if (hasLoopbackAlone) await provideHostsFile(hostsFile);
  const hasOwnNetwork = spec.network === "isolated";
  const ownNetwork = hasOwnNetwork ? await makeOwnNetwork(engine, spec, scope, signal) : undefined;
  if (spec.network === "bridge") await ensureSharedNetwork(engine);
  const options = toContainerOptions(spec, {
    scope,
    runtime,
    user,
    transport,
    agentPath: local ? agentPath : undefined,
    runDir,
    hostsFile: hasLoopbackAlone ? hostsFile : undefined,
    ownNetwork,
    enforcesDisk: info.enforces.disk,
  });
  const container = await engine.call(
    {
      doing: `creating sandbox ${spec.sandboxId}`,
      code: "CONTAINER_CREATION_FAILED",
      sandboxId: spec.sandboxId,
      image: spec.committed ?? spec.image,
      name: spec.name,
      isolation: spec.isolation,
    },
    // Named apart, for otherwise the whole of it, environment and all, would also go into the request's address.
    (abortSignal) =>
      engine.docker.createContainer({ _query: { name: spec.name }, _body: options, abortSignal } as never),
    { signal, graceMs: CREATE_GRACE_MS },
  );
  if (!local) await copyAgent(engine, container.id, agentPath, spec.sandboxId, signal);
  return { sandboxId: spec.sandboxId, containerId: container.id, transport, hasOwnNetwork };
}

/** Without it the sandbox would start, and reach nothing. */
function offlineRuntime({ isolation, network, sandboxId }: ContainerSpec, runtime: string): AidoError {
  return new AidoError(
    "ISOLATION_UNAVAILABLE",
    `Isolation ${isolation} has no network ${network} here: the engine has the runtime ${runtime} with --network=none`,
    {
      hint: `Take --network=none out of ${runtime}'s runtimeArgs in /etc/docker/daemon.json and restart Docker, or choose the network none.`,
      details: { sandboxId, isolation, runtime },
    },
  );
}

/** Never root: the user of this process, so that files in mounted directories are theirs, or an ordinary one. */
function hostUser(): { uid: number; gid: number } {
  const uid = process.getuid?.() ?? 0;
  return uid === 0 ? DEFAULT_USER : { uid, gid: process.getgid?.() ?? uid };
}

async function copyAgent(
  engine: Engine,
  containerId: string,
  agentPath: string,
  sandboxId: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const archive = await agentArchive(agentPath);
  const container = engine.docker.getContainer(containerId);
  const action = {
    doing: "copying the supervisor into the sandbox",
    code: "CONTAINER_CREATION_FAILED",
    sandboxId,
  } as const;
  try {
    await engine.call(action, (abortSignal) => container.putArchive(archive, { path: "/", abortSignal }), {
      signal,
    });
  } catch (thrown) {
    // A container without its supervisor is of no use to whoever finds it by its label later.
    await engine.call(action, () => container.remove({ force: true, v: true }));
    throw thrown;
  }
}
