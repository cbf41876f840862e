import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { release } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { AidoError } from "@aido/sdk/protocol";
import type { DriverCapabilities } from "../../core/driver/driver.ts";
import { type CgroupHierarchy, findCgroupHierarchy } from "./cgroup-hierarchy.ts";
import { ensureProgram, type PackageOptions } from "./ensure-packages.ts";
import { findProgram } from "./find-program.ts";
import { VISIBLE_PATH } from "./host-image.ts";
import { hostUser } from "./host-user.ts";
import { bootId } from "./process-table.ts";
import type { Processor } from "./seccomp-filter.ts";
import { checkUserNamespaces } from "./user-namespaces.ts";

/** What this machine has that sandboxes are made of. */
export interface Machine {
  bwrap: string;
  version: string;
  /** Options that only newer releases of bubblewrap have. */
  canSizeTemporary: boolean;
  canSetPermissions: boolean;
  processor: Processor;
  isRoot: boolean;
  cgroups: CgroupHierarchy | undefined;
  /** The host's `prlimit`, where it can bound a sandbox's processes without control groups. */
  prlimit: string | undefined;
}

/** Rejects with RUNTIME_UNAVAILABLE and what to type when something is missing that there is no way around. */
export async function examineMachine(root: string, options: PackageOptions): Promise<Machine> {
  if (process.platform !== "linux" || (process.arch !== "x64" && process.arch !== "arm64")) {
    throw new AidoError("RUNTIME_UNAVAILABLE", `The local driver needs Linux on x64 or arm64`, {
      hint: "Start Docker and use the Docker driver.",
    });
  }
  const bwrap = await ensureProgram(
    { program: "bwrap", package: "bubblewrap", within: options.searchPath },
    options,
  );
  const user = options.isRoot ? hostUser(root) : undefined;
  return {
    bwrap,
    ...(await checkedBwrap(root, bwrap, user)),
    processor: process.arch,
    isRoot: options.isRoot,
    cgroups: findCgroupHierarchy(),
    // Since 5.14 the kernel counts processes per user and user namespace; before, other processes would count too.
    prlimit: isAtLeast(release(), 5, 14) ? findProgram("prlimit", VISIBLE_PATH) : undefined,
  };
}

function isAtLeast(version: string, major: number, minor: number): boolean {
  const [first = 0, second = 0] = version.split(".").map((part) => Number.parseInt(part, 10));
  return first > major || (first === major && second >= minor);
}

type CheckedBwrap = Pick<Machine, "version" | "canSizeTemporary" | "canSetPermissions">;

/** Trying costs as much as a whole start, so a success is remembered until bubblewrap or the boot changes. */
async function checkedBwrap(root: string, bwrap: string, user: number | undefined): Promise<CheckedBwrap> {
  const memory = join(root, ".checked.json");
  const key = `1 ${bootId()} ${bwrap} ${statSync(bwrap).mtimeMs} ${user ?? process.getuid?.()}`;
  try {
    const { key: known, ...checked } = JSON.parse(readFileSync(memory, "utf8")) as CheckedBwrap & {
      key: string;
    };
    if (known === key) return checked;
  } catch {
    // Nothing is known yet.
  }
  await checkUserNamespaces(bwrap, user === undefined ? undefined : { uid: user, gid: user });
  const ask = async (option: string) =>
    (await promisify(execFile)(bwrap, [option], { timeout: 10_000 })).stdout;
  const [version, help] = await Promise.all([ask("--version"), ask("--help")]);
  const checked = {
    version: version.trim(),
    canSizeTemporary: help.includes("--size "),
    canSetPermissions: help.includes("--perms "),
  };
  mkdirSync(root, { recursive: true, mode: 0o700 });
  writeFileSync(`${memory}.${process.pid}`, JSON.stringify({ key, ...checked }));
  renameSync(`${memory}.${process.pid}`, memory);
  return checked;
}

export function toCapabilities(machine: Machine): DriverCapabilities {
  const has = machine.cgroups?.parents ?? {};
  const enforced = {
    cpus: has.cpu !== undefined,
    memory: has.memory !== undefined,
    pids: has.pids !== undefined || machine.prlimit !== undefined,
    disk: false,
  };
  const warnings = [
    "Sandboxes see the host's own /usr, read-only; only their workdir and temporary directories can be written.",
  ];
  const hint = machine.isRoot ? "the kernel offers none" : "this user may not make any; root may";
  if (!enforced.memory) warnings.push(`Memory is not limited: that needs control groups, and ${hint}.`);
  if (!enforced.cpus) warnings.push(`Processor time is not limited: that needs control groups, and ${hint}.`);
  if (!enforced.pids)
    warnings.push(`The number of processes is not limited: that needs control groups, and ${hint}.`);
  return {
    version: machine.version,
    isolations: ["container"],
    networks: ["none", "host"],
    enforced,
    users: false,
    images: false,
    privileged: false,
    warnings,
  };
}
