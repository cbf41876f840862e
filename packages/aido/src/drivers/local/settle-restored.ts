import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Mount } from "../../core/driver/driver.ts";
import { readState, writeState } from "./sandbox-state.ts";

/**
 * Sandboxes whose directories came from elsewhere: whatever process their state names is not theirs, even if one with
 * that number runs.
 */
export function settleRestoredLocal(root: string, moveMount: (mount: Mount) => Mount, now: Date): void {
  for (const name of names(root)) {
    const directory = join(root, name);
    const state = readState(directory);
    if (state === undefined) continue;
    const ended = { exitCode: undefined, outOfMemory: false, finishedAt: now.toISOString() };
    const end = state.end ?? (state.start === undefined ? undefined : ended);
    writeState(directory, { ...state, mounts: state.mounts.map(moveMount), end });
  }
}

function names(root: string): string[] {
  try {
    const entries = readdirSync(root, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw thrown;
  }
}
