import { existsSync } from "node:fs";
import { release } from "node:os";
import { AidoError } from "@aido/sdk/protocol";
import type { DriverCapabilities } from "../../core/driver/driver.ts";
import type { CgroupHierarchy } from "./cgroup-hierarchy.ts";
import { checkBwrap } from "./check-bwrap.ts";
import { ensureProgram, type PackageOptions } from "./ensure-packages.ts";
import { findProgram } from "./find-program.ts";
import { VISIBLE_PATH } from "./host-image.ts";
import type { Processor } from "./seccomp-filter.ts";

/** What this machine has that sandboxes are made of. */
export interface Machine {
  bwrap: string;
  version: string;
  /** Options that only newer releases of bubblewrap have. */
  canSizeTemporary: boolean;
  canSetPermissions: boolean;
  processor: Processor;
  isRoot: boolean;
  /** False where the kernel refuses them to bubblewrap; then aido is root, and sandboxes are made without. */
  userNamespaces: boolean;
  cgroups: CgroupHierarchy | undefined;
  /** The host's `prlimit`, where it can bound a sandbox's processes without control groups. */
  prlimit: string | undefined;
}

export interface MachineOptions extends PackageOptions {
  root: string;
  agentPath: string;
  /** False acts as where the kernel refuses them. */
  userNamespaces?: boolean | undefined;
  cgroups: CgroupHierarchy | undefined;
}

/** Rejects with RUNTIME_UNAVAILABLE and what to type when something is missing that there is no way around. */
export async function examineMachine(options: MachineOptions): Promise<Machine> {
  if (process.platform !== "linux" || (process.arch !== "x64" && process.arch !== "arm64")) {
    throw new AidoError("RUNTIME_UNAVAILABLE", `The local driver needs Linux on x64 or arm64`, {
      hint: "Start Docker and use the Docker driver.",
    });
  }
  if (!existsSync("/proc/self/mountinfo")) {
    throw new AidoError("RUNTIME_UNAVAILABLE", "The local driver needs /proc, and it is not mounted", {
      hint: "Type `mount -t proc proc /proc`.",
    });
  }
  const bwrap = await ensureProgram(
    { program: "bwrap", package: "bubblewrap", within: options.searchPath },
    options,
  );
  return {
    bwrap,
    ...(await checkBwrap(bwrap, options)),
    processor: process.arch,
    isRoot: options.isRoot,
    cgroups: options.cgroups,
    // Since 5.14 the kernel counts processes per user and user namespace; before, other processes would count too.
    prlimit: isAtLeast(release(), 5, 14) ? findProgram("prlimit", VISIBLE_PATH) : undefined,
  };
}

function isAtLeast(version: string, major: number, minor: number): boolean {
  const [first = 0, second = 0] = version.split(".").map((part) => Number.parseInt(part, 10));
  return first > major || (first === major && second >= minor);
}

export function toCapabilities(machine: Machine): DriverCapabilities {
  const has = machine.cgroups?.parents ?? {};
  const enforced = {
    cpus: has.cpu !== undefined,
    memory: has.memory !== undefined,
    pids: has.pids !== undefined || machine.prlimit !== undefined || !machine.userNamespaces,
    disk: false,
  };
  const warnings = [
    "Sandboxes see the host's own /usr, read-only; only their workdir and temporary directories can be written.",
  ];
  if (!machine.userNamespaces) {
    warnings.push(
      "User namespaces are refused here; sandboxes run as an unprivileged user of their own instead.",
    );
  }
  const hint = machine.isRoot ? "the kernel offers none" : "this user may not make any; root may";
  if (!enforced.memory) {
    const text = "Memory is limited for each process, not for a sandbox as a whole";
    warnings.push(`${text}: that needs control groups, and ${hint}.`);
  }
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
