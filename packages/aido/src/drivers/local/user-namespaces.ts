import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { AidoError } from "@aido/sdk/protocol";
import { hostPrograms } from "./bwrap-arguments.ts";

const LIMIT_MS = 10_000;

/** Settings that switch off what bubblewrap needs, and what to type to switch it on again. */
const SWITCHES = [
  {
    path: "/proc/sys/kernel/unprivileged_userns_clone",
    isOff: (value: number) => value === 0,
    hint: "Type `sudo sysctl -w kernel.unprivileged_userns_clone=1`.",
  },
  {
    path: "/proc/sys/user/max_user_namespaces",
    isOff: (value: number) => value === 0,
    hint: "Type `sudo sysctl -w user.max_user_namespaces=15000`.",
  },
  {
    path: "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    isOff: (value: number) => value === 1,
    hint: "Type `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, or give bwrap an AppArmor profile with `userns`.",
  },
] as const;

/** Starts an empty sandbox as the user that sandboxes will have; rejects with what to type when that fails. */
export async function checkUserNamespaces(
  bwrap: string,
  user: { uid: number; gid: number } | undefined,
): Promise<void> {
  const failure = await new Promise<string | undefined>((resolve) => {
    execFile(
      bwrap,
      [
        ...["--unshare-user", "--unshare-pid", "--unshare-net", "--uid", "1000", "--gid", "1000"],
        ...hostPrograms(),
        ...["--proc", "/proc", "--dev", "/dev", "--", "/usr/bin/true"],
      ],
      { env: {}, cwd: "/", timeout: LIMIT_MS, ...user },
      (error, _stdout, stderr) => resolve(error === null ? undefined : stderr.trim() || error.message),
    );
  });
  if (failure === undefined) return;
  throw new AidoError(
    "RUNTIME_UNAVAILABLE",
    `bubblewrap cannot make namespaces on this machine: ${failure}`,
    {
      hint: namespaceHint((path) => readFileSync(path, "utf8")),
    },
  );
}

export function namespaceHint(read: (path: string) => string): string {
  for (const { path, isOff, hint } of SWITCHES) {
    try {
      if (isOff(Number(read(path)))) return hint;
    } catch {
      // This kernel does not have the setting.
    }
  }
  return "The kernel refuses user namespaces, as inside an unprivileged container. Use the host itself, or Docker.";
}
