import { readdirSync, readFileSync } from "node:fs";

/** Whether a process with this text on its command line runs anywhere on this machine, in a sandbox or not. */
export function isRunning(text: string): boolean {
  return processes().some((pid) => read(`/proc/${pid}/cmdline`).includes(text));
}

/** The host's id of the first process of the sandbox in which a process with this text on its command line runs. */
export function firstProcessOf(text: string): number {
  for (const found of processes()) {
    if (!read(`/proc/${found}/cmdline`).includes(text)) continue;
    for (let pid = found; pid > 1; pid = parentOf(pid)) {
      // Process 1 of a namespace of its own: the host sees it under another number.
      if (/^NSpid:\t\d+(\t\d+)*\t1$/m.test(read(`/proc/${pid}/status`))) return pid;
    }
  }
  throw new Error(`no sandbox runs ${text}`);
}

function processes(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function parentOf(pid: number): number {
  return Number(/^PPid:\t(\d+)$/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0);
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
