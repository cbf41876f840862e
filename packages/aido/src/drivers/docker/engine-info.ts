import { readFile } from "node:fs/promises";
import type { Engine } from "./engine.ts";

/** What decides how sandboxes are made on an engine. */
export interface EngineInfo {
  readonly version: string;
  readonly runtimes: readonly string[];
  /** Runtimes that were registered to give no network, whatever a container asks for. */
  readonly offlineRuntimes: readonly string[];
  readonly hasSeccomp: boolean;
  readonly enforces: { cpus: boolean; memory: boolean; swap: boolean; pids: boolean; disk: boolean };
  /** Whether a socket in a bind-mounted directory reaches this process, with the owner it expects. */
  readonly sharesSockets: boolean;
}

/** What is read of the answer to `GET /info`. */
export interface RawInfo {
  ServerVersion?: string;
  Runtimes?: Record<string, { runtimeArgs?: string[] | null } | null>;
  SecurityOptions?: string[] | null;
  OperatingSystem?: string;
  MemoryLimit?: boolean;
  SwapLimit?: boolean;
  CpuCfsQuota?: boolean;
  CPUCfsQuota?: boolean;
  PidsLimit?: boolean;
  Driver?: string;
  DriverStatus?: [string, string][] | null;
  DockerRootDir?: string;
}

/** `answer`: to a question that was put a moment ago. */
export async function readEngineInfo(
  engine: Engine,
  answer?: Promise<RawInfo | undefined>,
): Promise<EngineInfo> {
  // The library's types leave out the options that its code takes.
  const ask = engine.docker.info.bind(engine.docker) as unknown as (options: object) => Promise<RawInfo>;
  const info =
    (await answer) ??
    (await engine.call({ doing: "asking Docker what it can do" }, (abortSignal) => ask({ abortSignal })));
  const security = info.SecurityOptions ?? [];
  return {
    version: info.ServerVersion ?? "of unknown version",
    runtimes: Object.keys(info.Runtimes ?? {}),
    offlineRuntimes: Object.entries(info.Runtimes ?? {})
      .filter(([, runtime]) => runtime?.runtimeArgs?.some((word) => /^--?network=none$/.test(word)))
      .map(([name]) => name),
    hasSeccomp: security.some((option) => option.startsWith("name=seccomp")),
    enforces: {
      cpus: info.CpuCfsQuota ?? info.CPUCfsQuota ?? false,
      memory: info.MemoryLimit ?? false,
      swap: info.SwapLimit ?? false,
      pids: info.PidsLimit ?? false,
      disk: await hasDiskQuota(info, engine.address.local),
    },
    sharesSockets: engine.address.local && sharesOwnerWith(info, security),
  };
}

/**
 * A virtual machine between the engine and this process shares files but no sockets. The supervisor is root
 * inside: unless that is the user of this process, it cannot use a directory of ours that is closed to others.
 */
function sharesOwnerWith(info: RawInfo, security: readonly string[]): boolean {
  if (process.platform !== "linux" || /docker desktop/i.test(info.OperatingSystem ?? "")) return false;
  if (security.some((option) => option.startsWith("name=userns"))) return false;
  if (security.some((option) => option.startsWith("name=rootless"))) return process.getuid?.() !== 0;
  return process.getuid?.() === 0;
}

async function hasDiskQuota(info: RawInfo, local: boolean): Promise<boolean> {
  if (info.Driver === "btrfs" || info.Driver === "zfs") return true;
  const backing = info.DriverStatus?.find(([name]) => name === "Backing Filesystem")?.[1];
  if (info.Driver !== "overlay2" || backing !== "xfs" || !local) return false;
  return hasProjectQuota(
    await readFile("/proc/self/mounts", "utf8"),
    info.DockerRootDir ?? "/var/lib/docker",
  );
}

/** Whether the file system that holds the path is mounted with project quotas. */
export function hasProjectQuota(mounts: string, path: string): boolean {
  const holding = mounts
    .split("\n")
    .map((line) => line.split(" "))
    .filter(([, target = ""]) => target === "/" || path === target || path.startsWith(`${target}/`))
    .sort((a, b) => (b[1]?.length ?? 0) - (a[1]?.length ?? 0))[0];
  return /(^|,)(pquota|prjquota)(,|$)/.test(holding?.[3] ?? "");
}
