import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";

/** A process named so that no later process with the same number is taken for it. */
export interface ProcessIdentity {
  pid: number;
  /** Clock ticks from boot to its start. */
  startTicks: number;
  bootId: string;
}

interface ProcessStat {
  state: string;
  parent: number;
  userTicks: number;
  systemTicks: number;
  /** Of children that ended and were waited for. */
  childTicks: number;
  startTicks: number;
}

export const TICKS_PER_SECOND = 100;

let boot: string | undefined;
export function bootId(): string {
  boot ??= readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  return boot;
}

/** The name stands in parentheses and may hold any character, so fields are counted from the last one. */
export function parseStat(text: string): ProcessStat {
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const number = (index: number) => Number(fields[index] ?? 0);
  return {
    state: fields[0] ?? "X",
    parent: number(1),
    userTicks: number(11),
    systemTicks: number(12),
    childTicks: number(13) + number(14),
    startTicks: number(19),
  };
}

export function readStat(pid: number): ProcessStat | undefined {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return undefined; // it has ended, or ends while it is read
  }
}

export function identify(pid: number): ProcessIdentity | undefined {
  const stat = readStat(pid);
  return stat === undefined ? undefined : { pid, startTicks: stat.startTicks, bootId: bootId() };
}

/** A process that has ended but was not waited for yet does not count as alive. */
export function isAlive(process: ProcessIdentity): boolean {
  if (process.bootId !== bootId()) return false;
  const stat = readStat(process.pid);
  return (
    stat !== undefined && stat.startTicks === process.startTicks && stat.state !== "Z" && stat.state !== "X"
  );
}

/** The process and everything below it. A namespace's orphans fall to its first process, so none is missed. */
export async function descendants(pid: number): Promise<number[]> {
  const found = [pid];
  for (let index = 0; index < found.length; index += 1) {
    const children = await readFile(`/proc/${found[index]}/task/${found[index]}/children`, "utf8").catch(
      () => "",
    );
    found.push(...children.split(" ").filter(Boolean).map(Number));
  }
  return found;
}
