import { readFile } from "node:fs/promises";
import { descendants, readStat, TICKS_PER_SECOND } from "./process-table.ts";

/** The sums over a sandbox's processes, where no control group counts. Shared pages are counted more than once. */
export async function processUsage(
  first: number,
): Promise<{ cpuMs: number; memoryBytes: number; pids: number }> {
  const pids = await descendants(first);
  let ticks = 0;
  let memoryBytes = 0;
  for (const pid of pids) {
    const stat = readStat(pid);
    if (stat !== undefined) ticks += stat.userTicks + stat.systemTicks + stat.childTicks;
    const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
    // Not by `^`, which \r in the process's own name would satisfy.
    memoryBytes += Number(/\nVmRSS:\s+(\d+) kB\n/.exec(status)?.[1] ?? 0) * 1024;
  }
  return { cpuMs: (ticks * 1000) / TICKS_PER_SECOND, memoryBytes, pids: pids.length };
}
