import type { Network, ProfileName, ResourceLimits } from "@aido/sdk/protocol";

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

/** A named bundle of defaults; whatever a request says itself comes first. */
export interface Profile {
  readonly image: string;
  readonly workdir: string;
  readonly network: Network;
  readonly limits: ResourceLimits;
  /** Container names are this and the sandbox's id, unless it `hasOwnName`. */
  readonly namePrefix: string;
  /** Its sandboxes always have the sidecar API, with a token of their own. */
  readonly hasSidecar: boolean;
  /** What the backend calls a container is the sandbox's own name, where it has one. */
  readonly hasOwnName?: true;
  /** Its containers share their bridge with none. */
  readonly standsAlone?: true;
}

const LIMITS: ResourceLimits = {
  cpus: 1,
  memoryBytes: 512 * MIB,
  pids: 100,
  diskBytes: 0,
  openFiles: 4096,
  outputBytes: 0,
};

/** Nobody's sandbox fills the host's disk, nor does a command's output. */
const BOUNDED: ResourceLimits = { ...LIMITS, diskBytes: 10 * GIB, outputBytes: GIB };

export const PROFILE_DEFAULTS: Readonly<Record<ProfileName, Profile>> = {
  aido: {
    image: "ubuntu:22.04",
    workdir: "/work",
    network: "none",
    // What a run prints may be its result.
    limits: { ...BOUNDED, outputBytes: 4 * GIB },
    namePrefix: "aido-",
    hasSidecar: false,
  },
  server: {
    image: "ubuntu:22.04",
    workdir: "/home/sandbox",
    network: "none",
    limits: { ...BOUNDED, cpus: 0.5 },
    namePrefix: "sandbox-",
    hasSidecar: false,
  },
  sidecar: {
    image: "ubuntu:22.04",
    workdir: "/home/agent",
    network: "bridge",
    limits: { ...BOUNDED, memoryBytes: 2 * GIB, pids: 512 },
    namePrefix: "sidecar-",
    hasSidecar: true,
  },
  swarm: {
    image: "ubuntu:22.04",
    workdir: "/workspace",
    network: "bridge",
    limits: { ...LIMITS, cpus: 2, memoryBytes: 4 * GIB, pids: 512, diskBytes: 8 * GIB },
    namePrefix: "aimi-",
    hasSidecar: false,
    hasOwnName: true,
    standsAlone: true,
  },
  agent: {
    image: "oven/bun:latest",
    workdir: "/workspace",
    network: "bridge",
    limits: { ...LIMITS, memoryBytes: 2 * GIB, pids: 512 },
    namePrefix: "coding-agent-",
    hasSidecar: false,
    hasOwnName: true,
  },
};
