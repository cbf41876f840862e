import { openSync, readFileSync, statSync, writeFileSync } from "node:fs";

/** More than bubblewrap writes. */
const ROOM_BYTES = 4096;

export interface BwrapStatus {
  childPid: number | undefined;
  exitCode: number | undefined;
  /** When the file was last written: with an exit code in it, the moment of the end. */
  writtenAt: Date;
}

/**
 * A file for bubblewrap's --json-status-fd, with its room taken: a pipe breaks when its reader is killed and a file
 * cannot grow on a full disk, and bubblewrap, which then ends half way, leaves its child waiting for ever.
 */
export function openBwrapStatus(path: string): number {
  writeFileSync(path, " ".repeat(ROOM_BYTES), { mode: 0o600 });
  return openSync(path, "r+");
}

/** Reads what bubblewrap wrote to its --json-status-fd: one JSON object after the other. */
export function readBwrapStatus(path: string): BwrapStatus | undefined {
  let text: string;
  let writtenAt: Date;
  try {
    text = readFileSync(path, "utf8");
    writtenAt = statSync(path).mtime;
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw thrown;
  }
  const number = (key: string) => {
    const found = new RegExp(`"${key}":\\s*(\\d+)`).exec(text)?.[1];
    return found === undefined ? undefined : Number(found);
  };
  return { childPid: number("child-pid"), exitCode: number("exit-code"), writtenAt };
}
