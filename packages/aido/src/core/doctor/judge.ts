import { type Finding, failed, ok, warning } from "./finding.ts";

/** Devices that every sandbox has. Anything else is a piece of the host. */
const HARMLESS_DEVICES = new Set([
  ...["null", "zero", "full", "random", "urandom", "tty", "ptmx", "console"],
  ...["stdin", "stdout", "stderr", "fd", "core", "pts", "shm", "mqueue"],
]);
const EMPTY_SET = /^0+$/;

/** From /proc/self/status of a process of the sandbox's user. */
export function judgePrivileges(status: string): Finding {
  const name = "privileges";
  const field = (key: string) => new RegExp(`^${key}:\\s+(\\S+)`, "m").exec(status)?.[1];
  const kept = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"].filter(
    (set) => !EMPTY_SET.test(field(set) ?? "unknown"),
  );
  const problems = [
    ...(field("Uid") === "0" ? ["it runs as root"] : []),
    ...(kept.length > 0 ? [`it keeps capabilities (${kept.join(", ")})`] : []),
    ...(field("NoNewPrivs") === "1" ? [] : ["it may gain privileges"]),
  ];
  if (problems.length > 0) return failed(name, `In a sandbox ${problems.join(", ")}`);
  // gVisor answers system calls itself and shows no filter of the host's kernel.
  if (field("Seccomp") !== "2") return warning(name, "none, but no system call filter is visible inside");
  return ok(name, "none: an ordinary user, no capabilities, no new privileges, system calls filtered");
}

/** `pids` as listed in the sandbox's /proc, `first` the name of its process 1. */
export function judgeProcesses(pids: readonly string[], first: string): Finding {
  const name = "processes";
  if (first.trim() !== "aido-agent") {
    return failed(name, `A sandbox sees foreign processes: its number 1 is ${first.trim() || "unreadable"}`);
  }
  return ok(name, `the host's are out of sight; a sandbox sees ${pids.length} of its own`);
}

export function judgeDevices(names: readonly string[]): Finding {
  const foreign = names.filter((device) => !HARMLESS_DEVICES.has(device));
  if (foreign.length === 0) return ok("devices", "only null, zero, random and terminals");
  return failed("devices", `A sandbox sees devices of the host: ${foreign.slice(0, 10).join(", ")}`);
}

/** From /proc/net/dev, and whether a server of ours on the host's loopback was reached. */
export function judgeNetwork(devices: string, probe: { reached: boolean; tried: boolean }): Finding {
  const name = "network";
  if (probe.reached) return failed(name, "A sandbox without network reached a server on the host's loopback");
  const interfaces = devices
    .split("\n")
    .slice(2)
    .map((line) => line.split(":")[0]?.trim() ?? "")
    .filter(Boolean);
  const outside = interfaces.filter((each) => each !== "lo");
  // Tunnels that the kernel adds to every namespace are down and lead nowhere.
  const real = outside.filter(
    (each) => !/^(tunl|gre|gretap|erspan|sit|ip6tnl|ip6gre|ip_vti|ip6_vti)\d*$/.test(each),
  );
  if (real.length > 0) return failed(name, `A sandbox without network has ${real.join(", ")}`);
  const how = probe.tried ? "a server on the host's loopback was not reached" : "it has loopback only";
  return ok(name, `none means none: ${how}`);
}

/** What became of attempts to look at things outside; each should have found nothing. */
export function judgeReach(
  name: string,
  attempts: readonly { what: string; reached: boolean }[],
  fine: string,
): Finding {
  const reached = attempts.filter((attempt) => attempt.reached).map((attempt) => attempt.what);
  if (reached.length === 0) return ok(name, fine);
  return failed(name, `A sandbox reached ${reached.join(", ")}`);
}
