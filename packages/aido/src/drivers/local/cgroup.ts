import { chmodSync, existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ResourceLimits } from "@aido/sdk/protocol";
import type { CgroupHierarchy, Controller } from "./cgroup-hierarchy.ts";

const PERIOD_US = 100_000;
const SMALLEST_QUOTA_US = 1_000;
/** bubblewrap's own process outside the sandbox is in the same group. */
const MONITOR_PROCESSES = 1;

/** The control groups of one sandbox: one directory, or one per controller in version 1. */
export class Cgroup {
  readonly #hierarchy: CgroupHierarchy;
  readonly #group: string;
  readonly #name: string;

  constructor(hierarchy: CgroupHierarchy, scope: string, name: string) {
    this.#hierarchy = hierarchy;
    this.#group = `aido-${scope}`;
    this.#name = name;
  }

  /** Makes the groups with their limits; the files a process is written to so that it joins are returned. */
  create(limits: ResourceLimits): string[] {
    const directories = this.#directories();
    for (const directory of directories) {
      if (this.#hierarchy.version === 2) this.#delegate(directory);
      mkdirSync(directory, { recursive: true });
      // Its counters are read inside, by a user that is not ours, whatever the umask.
      for (const path of [dirname(directory), directory]) chmodSync(path, 0o755);
    }
    for (const [directory, file, value] of this.#settings(limits)) {
      if (existsSync(join(directory, file))) writeFileSync(join(directory, file), value);
    }
    const file = this.#hierarchy.version === 1 ? "tasks" : "cgroup.procs";
    return directories.map((directory) => join(directory, file));
  }

  /** The directory with the memory counters, if memory is accounted for. */
  get memoryDirectory(): string | undefined {
    return this.#directory("memory");
  }

  /** How often the kernel killed for lack of memory. */
  oomKills(): number {
    const file = this.#hierarchy.version === 1 ? "memory.oom_control" : "memory.events";
    return keyedNumber(this.#read("memory", file), "oom_kill") ?? 0;
  }

  usage(): { cpuMs: number | undefined; memoryBytes: number | undefined; pids: number | undefined } {
    const first = this.#hierarchy.version === 1;
    const cpu = first
      ? scaled(this.#number("cpuacct", "cpuacct.usage"), 1e-6)
      : scaled(keyedNumber(this.#read("cpu", "cpu.stat"), "usage_usec"), 1e-3);
    const total = this.#number("memory", first ? "memory.usage_in_bytes" : "memory.current");
    // Files that were read once can be dropped at any time; they are no need of the sandbox.
    const cached =
      keyedNumber(this.#read("memory", "memory.stat"), first ? "total_inactive_file" : "inactive_file") ?? 0;
    const pids = this.#number("pids", "pids.current");
    return {
      cpuMs: cpu,
      memoryBytes: total === undefined ? undefined : Math.max(0, total - cached),
      pids: pids === undefined ? undefined : Math.max(0, pids - MONITOR_PROCESSES),
    };
  }

  /** Ends whatever process is in one of the groups. */
  kill(): void {
    for (const directory of this.#directories()) {
      for (const pid of processesIn(directory)) killProcess(pid);
    }
  }

  /** True when all are gone; a group that still has processes stays. */
  remove(): boolean {
    return this.#directories()
      .map((directory) => removeDirectory(directory))
      .every(Boolean);
  }

  /** The scope's own directories go with its last sandbox. */
  removeScope(): void {
    for (const parent of new Set(Object.values(this.#hierarchy.parents))) {
      removeDirectory(join(parent, this.#group));
    }
  }

  #settings(limits: ResourceLimits): [directory: string, file: string, value: string][] {
    const quota = Math.max(SMALLEST_QUOTA_US, Math.round(limits.cpus * PERIOD_US));
    const files: [Controller, string, string][] =
      this.#hierarchy.version === 1
        ? [
            ["memory", "memory.limit_in_bytes", `${limits.memoryBytes}`],
            ["memory", "memory.memsw.limit_in_bytes", `${limits.memoryBytes}`],
            ["pids", "pids.max", `${limits.pids + MONITOR_PROCESSES}`],
            ["cpu", "cpu.cfs_period_us", `${PERIOD_US}`],
            ["cpu", "cpu.cfs_quota_us", `${quota}`],
          ]
        : [
            ["memory", "memory.max", `${limits.memoryBytes}`],
            ["memory", "memory.swap.max", "0"],
            ["pids", "pids.max", `${limits.pids + MONITOR_PROCESSES}`],
            ["cpu", "cpu.max", `${quota} ${PERIOD_US}`],
          ];
    return files.flatMap(([controller, file, value]) => {
      const directory = this.#directory(controller);
      return directory === undefined ? [] : [[directory, file, value]];
    });
  }

  /** In version 2 a controller works in a group only if every group above hands it down. */
  #delegate(directory: string): void {
    const enabled = (["memory", "pids", "cpu"] as const)
      .filter((controller) => this.#hierarchy.parents[controller] !== undefined)
      .map((controller) => `+${controller}`)
      .join(" ");
    const scope = join(directory, "..");
    mkdirSync(scope, { recursive: true });
    for (const above of [join(scope, ".."), scope])
      writeFileSync(join(above, "cgroup.subtree_control"), enabled);
  }

  #directories(): string[] {
    return [...new Set(Object.values(this.#hierarchy.parents))].map((parent) =>
      join(parent, this.#group, this.#name),
    );
  }

  #directory(controller: Controller): string | undefined {
    const parent = this.#hierarchy.parents[controller];
    return parent === undefined ? undefined : join(parent, this.#group, this.#name);
  }

  #read(controller: Controller, file: string): string | undefined {
    const directory = this.#directory(controller);
    if (directory === undefined) return undefined;
    try {
      return readFileSync(join(directory, file), "utf8");
    } catch {
      return undefined; // the sandbox has no group, or no more
    }
  }

  #number(controller: Controller, file: string): number | undefined {
    const text = this.#read(controller, file);
    return text === undefined ? undefined : Number(text);
  }
}

function keyedNumber(text: string | undefined, key: string): number | undefined {
  const line = text?.split("\n").find((candidate) => candidate.startsWith(`${key} `));
  return line === undefined ? undefined : Number(line.slice(key.length + 1));
}

function scaled(value: number | undefined, factor: number): number | undefined {
  return value === undefined ? undefined : value * factor;
}

function processesIn(directory: string): number[] {
  try {
    return readFileSync(join(directory, "cgroup.procs"), "utf8").split("\n").map(Number).filter(isKillable);
  } catch {
    return [];
  }
}

/** Processes of a namespace that is not below ours are listed as 0, which would name our own group. */
function isKillable(pid: number): boolean {
  return pid > 1 && pid !== process.pid;
}

function killProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== "ESRCH") throw thrown;
  }
}

function removeDirectory(path: string): boolean {
  try {
    rmdirSync(path);
    return true;
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === "ENOENT";
  }
}
