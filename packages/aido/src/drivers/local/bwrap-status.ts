import { readFileSync, statSync } from "node:fs";

export interface BwrapStatus {
  childPid: number | undefined;
  exitCode: number | undefined;
  /** When the file was last written: with an exit code in it, the moment of the end. */
  writtenAt: Date;
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
