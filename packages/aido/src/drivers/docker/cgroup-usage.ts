import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ContainerUsage } from "../../core/driver/driver.ts";

const CGROUP_ROOT = "/sys/fs/cgroup";

/** Where the kernel accounts for one container. Version 1 has a tree per controller, version 2 has one. */
export type CgroupPaths =
  | { readonly version: 1; readonly cpu: string; readonly memory: string; readonly pids: string }
  | { readonly version: 2; readonly path: string };

/** Finds a process's control groups; undefined when the kernel's accounting is not visible from here. */
export async function findCgroup(pid: number): Promise<CgroupPaths | undefined> {
  try {
    return toCgroupPaths(await readFile(`/proc/${pid}/cgroup`, "utf8"));
  } catch {
    return undefined;
  }
}

/** Reads the lines `number:controllers:path` of /proc/<pid>/cgroup. */
export function toCgroupPaths(text: string, root = CGROUP_ROOT): CgroupPaths | undefined {
  const byController = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [, controllers, ...path] = line.split(":");
    if (controllers === undefined) continue;
    for (const name of controllers.split(",")) byController.set(name, path.join(":"));
  }
  const cpu = byController.get("cpuacct");
  const memory = byController.get("memory");
  const pids = byController.get("pids");
  if (cpu !== undefined && memory !== undefined && pids !== undefined) {
    return {
      version: 1,
      cpu: join(root, "cpuacct", cpu),
      memory: join(root, "memory", memory),
      pids: join(root, "pids", pids),
    };
  }
  const unified = byController.get("");
  // The root group accounts for the whole machine, not for a container.
  if (unified === undefined || unified === "/" || cpu !== undefined) return undefined;
  return { version: 2, path: join(root, unified) };
}

/** Rejects with ENOENT once the container has ended. Page cache that can be given back does not count as memory. */
export async function readCgroupUsage(paths: CgroupPaths): Promise<ContainerUsage> {
  if (paths.version === 1) {
    const [cpu, memory, stat, pids] = await Promise.all([
      readFile(join(paths.cpu, "cpuacct.usage"), "utf8"),
      readFile(join(paths.memory, "memory.usage_in_bytes"), "utf8"),
      readFile(join(paths.memory, "memory.stat"), "utf8"),
      readFile(join(paths.pids, "pids.current"), "utf8"),
    ]);
    return toUsage(Number(cpu) / 1e6, Number(memory), field(stat, "total_inactive_file"), Number(pids));
  }
  const [cpu, memory, stat, pids] = await Promise.all([
    readFile(join(paths.path, "cpu.stat"), "utf8"),
    readFile(join(paths.path, "memory.current"), "utf8"),
    readFile(join(paths.path, "memory.stat"), "utf8"),
    readFile(join(paths.path, "pids.current"), "utf8"),
  ]);
  return toUsage(field(cpu, "usage_usec") / 1e3, Number(memory), field(stat, "inactive_file"), Number(pids));
}

export function toUsage(cpuMs: number, memory: number, inactiveFile: number, pids: number): ContainerUsage {
  return {
    cpuMs: Math.round(cpuMs),
    memoryBytes: Math.max(0, memory - inactiveFile),
    pids,
  };
}

function field(text: string, name: string): number {
  const line = text.split("\n").find((each) => each.startsWith(`${name} `));
  return line === undefined ? 0 : Number(line.slice(name.length + 1));
}
