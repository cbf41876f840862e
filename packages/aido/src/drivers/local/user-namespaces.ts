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

/** What to type so that user namespaces can be made. */
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
