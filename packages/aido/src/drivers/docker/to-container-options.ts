import type Docker from "dockerode";
import type { ContainerSpec } from "../../core/driver/driver.ts";
import { LABEL, type Transport } from "./labels.ts";
import { ownNetworkName } from "./own-network.ts";
import { SHARED_NETWORK } from "./shared-network.ts";

/** Where the supervisor and its socket are inside every sandbox. */
export const AGENT_TARGET = "/.aido/aido-agent";
export const RUN_TARGET = "/run/aido";
const HOSTS_TARGET = "/etc/hosts";
export const SOCKET_TARGET = `${RUN_TARGET}/agent.sock`;

export interface ContainerPlan {
  readonly scope: string;
  readonly runtime: string | undefined;
  readonly user: { uid: number; gid: number };
  readonly transport: Transport;
  /** Host path of the supervisor to mount; undefined when it is copied into the container instead. */
  readonly agentPath: string | undefined;
  /** Host directory for the supervisor's socket; used by the socket transport. */
  readonly runDir: string;
  /** Host path of the sandbox's /etc/hosts when it gets a network namespace that the engine has nothing to do with. */
  readonly hostsFile: string | undefined;
  /** The id of the network that was made for it: its name may come to belong to another one too. */
  readonly ownNetwork: string | undefined;
  readonly enforcesDisk: boolean;
}

/** What the supervisor needs to become the exec's user, to end its processes and to give it its directory. */
const SUPERVISOR_CAPABILITIES = ["SETUID", "SETGID", "SETPCAP", "KILL", "CHOWN"];
const RUN_TMPFS_BYTES = 65_536;
/** How long what a main command said last waits for a host that was ended; whoever comes back after a weekend has it. */
const MAIN_LINGER_MS = 7 * 24 * 60 * 60_000;

/** The sandbox's variables are not among them: each exec brings its own, and the engine would show them to everyone. */
export function toContainerOptions(spec: ContainerSpec, plan: ContainerPlan): Docker.ContainerCreateOptions {
  return {
    Image: spec.committed ?? spec.image,
    User: "0:0",
    Entrypoint: [
      ...[AGENT_TARGET, "supervise", "--socket", SOCKET_TARGET],
      ...["--main-linger", `${MAIN_LINGER_MS}`],
      ...(rootKeepsCapabilities(spec) ? ["--privileged", "root"] : []),
    ],
    Cmd: [],
    WorkingDir: "/",
    Labels: {
      ...spec.labels,
      [LABEL.sandbox]: spec.sandboxId,
      [LABEL.scope]: plan.scope,
      [LABEL.user]: `${plan.user.uid}:${plan.user.gid}`,
      [LABEL.transport]: plan.transport,
      ...(spec.network === "isolated" ? { [LABEL.network]: spec.network } : {}),
    },
    Healthcheck: { Test: ["NONE"] },
    StopSignal: "SIGTERM",
    AttachStdin: false,
    AttachStdout: false,
    AttachStderr: false,
    OpenStdin: false,
    Tty: false,
    // Loopback alone is the runtime's work. The engine would start itself once more in each container, only to find out
    // that there is nothing to connect: half the time of a start.
    ...(plan.hostsFile === undefined ? {} : { NetworkDisabled: true }),
    ...(plan.ownNetwork === undefined ? {} : { NetworkingConfig: toEndpoints(spec, plan.ownNetwork) }),
    HostConfig: toHostConfig(spec, plan),
  };
}

function toNetworkMode(spec: ContainerSpec): string {
  if (spec.network === "isolated") return ownNetworkName(spec);
  return spec.network === "bridge" ? SHARED_NETWORK : spec.network;
}

function toEndpoints(
  spec: ContainerSpec,
  networkId: string,
): Docker.ContainerCreateOptions["NetworkingConfig"] {
  return { EndpointsConfig: { [ownNetworkName(spec)]: { NetworkID: networkId } } };
}

/** Under Sysbox the wall is a user namespace, in which root is nobody of the host's: engines and packages need what it has there. */
const rootKeepsCapabilities = ({ privileged, isolation }: ContainerSpec) =>
  privileged || isolation === "sysbox";

function toPrivileges(spec: ContainerSpec): Docker.HostConfig {
  if (spec.privileged) return { Privileged: true };
  if (rootKeepsCapabilities(spec)) return { Privileged: false };
  return { CapDrop: ["ALL"], CapAdd: SUPERVISOR_CAPABILITIES, SecurityOpt: ["no-new-privileges"] };
}

function toHostConfig(spec: ContainerSpec, plan: ContainerPlan): Docker.HostConfig {
  const { limits } = spec;
  return {
    ...(plan.runtime === undefined ? {} : { Runtime: plan.runtime }),
    ...toPrivileges(spec),
    NetworkMode: toNetworkMode(spec),
    Memory: limits.memoryBytes,
    MemorySwap: limits.memoryBytes + (limits.swapBytes ?? 0),
    OomKillDisable: false,
    NanoCpus: Math.round(limits.cpus * 1e9),
    PidsLimit: limits.pids,
    Ulimits: [
      { Name: "nofile", Soft: limits.openFiles, Hard: limits.openFiles },
      { Name: "core", Soft: 0, Hard: 0 },
    ],
    ...(plan.enforcesDisk && limits.diskBytes > 0 ? { StorageOpt: { size: String(limits.diskBytes) } } : {}),
    Mounts: toMounts(spec, plan),
    IpcMode: "private",
    ReadonlyRootfs: false,
    LogConfig: { Type: "none", Config: {} },
    RestartPolicy: { Name: "no" },
    PublishAllPorts: false,
    AutoRemove: false,
    Init: false,
  };
}

/** Mounts rather than binds: a missing source is an error, not a new directory, and a colon is a letter like others. */
function toMounts(spec: ContainerSpec, plan: ContainerPlan): Docker.MountSettings[] {
  const bind = (source: string, target: string, readOnly: boolean): Docker.MountSettings => ({
    Type: "bind",
    Source: source,
    Target: target,
    ReadOnly: readOnly,
    BindOptions: { Propagation: "rprivate", NonRecursive: true } as Docker.MountSettings["BindOptions"],
  });
  const run: Docker.MountSettings =
    plan.transport === "socket"
      ? bind(plan.runDir, RUN_TARGET, false)
      : {
          Type: "tmpfs",
          Source: "",
          Target: RUN_TARGET,
          TmpfsOptions: { SizeBytes: RUN_TMPFS_BYTES, Mode: 0o700 },
        };
  return [
    ...(plan.agentPath === undefined ? [] : [bind(plan.agentPath, AGENT_TARGET, true)]),
    run,
    ...(plan.hostsFile === undefined ? [] : [bind(plan.hostsFile, HOSTS_TARGET, true)]),
    ...spec.mounts.map((mount) => bind(mount.source, mount.target, mount.readOnly)),
  ];
}
