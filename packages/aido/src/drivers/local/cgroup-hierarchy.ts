import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

export const CONTROLLERS = ["memory", "pids", "cpu", "cpuacct"] as const;
export type Controller = (typeof CONTROLLERS)[number];

/** Where this process may make control groups, per controller; a controller that is missing cannot be used. */
export interface CgroupHierarchy {
  version: 1 | 2;
  parents: Readonly<Partial<Record<Controller, string>>>;
}

interface CgroupMount {
  path: string;
  version: 1 | 2;
  controllers: readonly string[];
}

/** `mountinfo` and `own` are the contents of /proc/self/mountinfo and /proc/self/cgroup. */
export function findCgroupHierarchy(
  sources: { mountinfo: string; own: string } = {
    mountinfo: readText("/proc/self/mountinfo"),
    own: readText("/proc/self/cgroup"),
  },
): CgroupHierarchy | undefined {
  const mounts = parseMounts(sources.mountinfo);
  const first = mounts.filter((mount) => mount.version === 1);
  const parents: Partial<Record<Controller, string>> = {};
  for (const controller of CONTROLLERS) {
    const mount = first.find((candidate) => candidate.controllers.includes(controller));
    if (mount !== undefined && isWritable(mount.path)) parents[controller] = mount.path;
  }
  if (Object.keys(parents).length > 0) return { version: 1, parents };

  const unified = mounts.find((mount) => mount.version === 2);
  if (unified === undefined) return undefined;
  const parent = highestWritable(unified.path, ownUnifiedPath(sources.own));
  if (parent === undefined) return undefined;
  const available = readWords(join(parent, "cgroup.controllers"));
  for (const controller of ["memory", "pids", "cpu"] as const) {
    if (available.includes(controller)) parents[controller] = parent;
  }
  if (parents.cpu !== undefined) parents.cpuacct = parents.cpu;
  return Object.keys(parents).length > 0 ? { version: 2, parents } : undefined;
}

/** Empty where /proc is not mounted: no groups then, and whoever needs /proc says so. */
function readText(path: string): string {
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

function parseMounts(mountinfo: string): CgroupMount[] {
  return mountinfo.split("\n").flatMap((line): CgroupMount[] => {
    const [before, after] = line.split(" - ");
    const path = before?.split(" ")[4];
    const [type, , options] = after?.split(" ") ?? [];
    if (path === undefined) return [];
    if (type === "cgroup2") return [{ path, version: 2, controllers: [] }];
    return type === "cgroup" ? [{ path, version: 1, controllers: options?.split(",") ?? [] }] : [];
  });
}

function ownUnifiedPath(own: string): string {
  const line = own.split("\n").find((candidate) => candidate.startsWith("0::"));
  return line?.slice("0::".length) ?? "/";
}

/** A process can be moved only below a group that both its old and its new place have in common and we own. */
function highestWritable(root: string, own: string): string | undefined {
  let found: string | undefined;
  for (let path = join(root, own); path.startsWith(root); path = dirname(path)) {
    if (!isWritable(path) || !isWritable(join(path, "cgroup.procs"))) break;
    found = path;
    if (path === root) break;
  }
  return found;
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function readWords(path: string): string[] {
  try {
    return readFileSync(path, "utf8").trim().split(/\s+/);
  } catch {
    return [];
  }
}
