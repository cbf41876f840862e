import { readFileSync } from "node:fs";
import { release } from "node:os";
import { type Finding, ok, warning } from "./finding.ts";

/** What the kernel offers, whatever driver is used. Reads a few small files; nothing is started. */
export function checkMachine(read: (path: string) => string = readText): Finding[] {
  return [checkKernel(), checkCgroups(read), checkUserNamespaces(read)];
}

function checkKernel(): Finding {
  return ok("kernel", `Linux ${release()} on ${process.arch}, Node ${process.versions.node}`);
}

function checkCgroups(read: (path: string) => string): Finding {
  const mounts = attempt(() => read("/proc/self/mountinfo").split("\n")) ?? [];
  const ofType = (type: string) => mounts.filter((line) => line.split(" - ")[1]?.startsWith(`${type} `));
  const first = ofType("cgroup").length;
  if (first > 0) return ok("cgroups", "version 1, which limits memory, processes and processor time");
  const unified = ofType("cgroup2")[0]?.split(" ")[4];
  const controllers =
    unified === undefined ? undefined : attempt(() => read(`${unified}/cgroup.controllers`).trim());
  if (controllers) return ok("cgroups", `version 2 with ${controllers}`);
  return warning(
    "cgroups",
    "no control groups are mounted; limits can be promised only by a remote engine",
    "Mount them with `mount -t cgroup2 none /sys/fs/cgroup`, or use a host that has them.",
  );
}

function checkUserNamespaces(read: (path: string) => string): Finding {
  const number = (path: string) => {
    const text = attempt(() => read(path));
    return text === undefined ? undefined : Number(text);
  };
  if (number("/proc/sys/user/max_user_namespaces") === 0) {
    return warning(
      "user-ns",
      "user namespaces are switched off; the local driver needs them unless it is root",
      "Type `sudo sysctl -w user.max_user_namespaces=15000`.",
    );
  }
  if (number("/proc/sys/kernel/unprivileged_userns_clone") === 0) {
    return warning(
      "user-ns",
      "only root may make user namespaces; the local driver needs them unless it is root",
      "Type `sudo sysctl -w kernel.unprivileged_userns_clone=1`.",
    );
  }
  if (number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") === 1) {
    return warning(
      "user-ns",
      "AppArmor keeps programs without a profile from user namespaces; the local driver needs them unless it is root",
      "Type `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, or give bwrap a profile with `userns`.",
    );
  }
  return ok("user-ns", "no setting of the kernel restricts user namespaces");
}

function attempt<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch {
    return undefined; // this kernel does not have the file
  }
}

function readText(path: string): string {
  return readFileSync(path, "utf8");
}
