import { readFileSync } from "node:fs";

/** What this process, and whatever it starts, may open at most: a higher limit is not its own to give. */
export function mostOpenFiles(): number {
  const hard = /^Max open files\s+\S+\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
  return hard === undefined ? Number.MAX_SAFE_INTEGER : Number(hard);
}
