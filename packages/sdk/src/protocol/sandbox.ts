import type { Permissions } from "./permissions.ts";

export const SANDBOX_STATES = ["pending", "running", "stopped", "deleted"] as const;
export type SandboxState = (typeof SANDBOX_STATES)[number];

/**
 * Where the files of a sandbox are that does not run: `hot` in its stopped container, `warm` in an image of it, `cold`
 * in the object store. Of one that is `gone` nothing is left but what has still to be cleared away.
 */
export const TIERS = ["hot", "warm", "cold", "gone"] as const;
export type Tier = (typeof TIERS)[number];

/** How a sandbox that no longer runs came to its end. */
export const END_REASONS = [
  "completed",
  "failed",
  "timeout",
  "stopped",
  "idle",
  "out_of_memory",
  "disk_full",
  "lost",
] as const;
export type EndReason = (typeof END_REASONS)[number];

/** Chosen per sandbox; a level the machine cannot give is refused, never replaced by a weaker one. */
export const ISOLATIONS = ["container", "gvisor", "sysbox", "kata"] as const;
export type Isolation = (typeof ISOLATIONS)[number];

/** `none` has loopback only; `bridge` reaches outside; `host` is the host's own network and dangerous. */
export const NETWORKS = ["none", "bridge", "host"] as const;
export type Network = (typeof NETWORKS)[number];

export const PROFILES = ["aido", "server", "sidecar", "swarm", "agent"] as const;
export type ProfileName = (typeof PROFILES)[number];

export interface ResourceLimits {
  /** Processor share; 0.5 is half a core. */
  cpus: number;
  /** Memory and swap together, unless there is swap besides. */
  memoryBytes: number;
  /** Swap beyond it; none when absent. */
  swapBytes?: number | undefined;
  pids: number;
  /** 0 means no limit. */
  diskBytes: number;
  openFiles: number;
  /** Bytes of one exec's output that are kept per stream; beyond it the exec is killed. 0 means no limit. */
  outputBytes: number;
}

export interface CreateSandbox {
  id?: string | undefined;
  /** Unique among sandboxes that are not deleted. */
  name?: string | undefined;
  profile?: ProfileName | undefined;
  image?: string | undefined;
  isolation?: Isolation | undefined;
  workdir?: string | undefined;
  /** `uid`, `uid:gid` or a name from the image's /etc/passwd. */
  user?: string | undefined;
  env?: Readonly<Record<string, string>> | undefined;
  network?: Network | undefined;
  limits?: { [Limit in keyof ResourceLimits]?: ResourceLimits[Limit] | undefined } | undefined;
  /** Life of the sandbox from its start; 0 means no end. */
  ttlMs?: number | undefined;
  /** Stop it when nobody has used it for so long; 0 means never. */
  idleTimeoutMs?: number | undefined;
  /** Start it again when it is stopped and somebody uses it: a command, a file, a port. */
  autoResume?: boolean | undefined;
  /** Name of a workspace to have as its working directory; it outlives the sandbox, and is made when it is new. */
  workspace?: string | undefined;
  /** Beneath this address its snapshots go, as `<id>/snapshot…`, instead of the operator's place; aido never removes them. */
  snapshotDestination?: string | undefined;
  labels?: Readonly<Record<string, string>> | undefined;
  /** What it may do outside, as far as the operator allows it. */
  permissions?: Permissions | undefined;
  /** Dangerous: full privileges of the engine. */
  privileged?: boolean | undefined;
  /** Whether execs that change the workspace are recorded in its history. */
  history?: boolean | undefined;
  /** Bearer token of its sidecar API. The profile `sidecar` gets a random one when none is given; others have none. */
  token?: string | undefined;
}

export interface SandboxInfo {
  id: string;
  name: string | undefined;
  profile: ProfileName;
  image: string;
  /** What it really runs where the driver has no images, such as `host /usr/bin/python3.11`. */
  programs?: string | undefined;
  driver: string;
  isolation: Isolation;
  state: SandboxState;
  endReason: EndReason | undefined;
  containerId: string | undefined;
  workdir: string;
  network: Network;
  limits: ResourceLimits;
  labels: Readonly<Record<string, string>>;
  createdAt: Date;
  startedAt: Date | undefined;
  stoppedAt: Date | undefined;
  expiresAt: Date | undefined;
  /** 0 means never. */
  idleTimeoutMs: number;
  autoResume: boolean;
  /** The last use that is known of; right to some seconds. */
  lastActivityAt: Date;
  /** What is being done to start it, by whom it was asked; undefined when nothing is. */
  phase?: string | undefined;
  /** Where its sidecar API answers, while `aido serve` runs; undefined when it has none. */
  sidecarUrl: string | undefined;
  /** Undefined while it runs. */
  tier: Tier | undefined;
  tierSince: Date | undefined;
  /** The name of the workspace that is its working directory. */
  workspace?: string | undefined;
}

/** What only whoever makes a sandbox is told. */
export interface CreatedSandbox extends SandboxInfo {
  /** Of its sidecar API. Only a hash is kept, so it cannot be asked for again. */
  token: string | undefined;
}

/** What it takes to use a sandbox's sidecar API. */
export interface SidecarAccess {
  sandboxId: string;
  sidecarUrl: string;
  token: string;
}

export interface SandboxStats {
  cpuMs: number;
  memoryBytes: number;
  pids: number;
  at: Date;
}
