import { readdirSync, readFileSync } from "node:fs";

/** The processes on this machine that run as the host user `uid`, those that only wait to be reaped excepted. */
export function userProcesses(uid: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const status = readFileSync(`/proc/${pid}/status`, "utf8");
        return new RegExp(`^Uid:\\t${uid}\\t`, "m").test(status) && !/^State:\t[ZX]/m.test(status);
      } catch {
        return false;
      }
    });
}
