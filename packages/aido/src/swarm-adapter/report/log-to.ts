import type { Writable } from "node:stream";

const MAX_WAITING = 1024 * 1024;

/** Lines of the log. While nobody reads them only so much waits in memory; what is left out then is counted. */
export function logTo(stream: Writable): (line: string) => void {
  let leftOut = 0;
  return (line) => {
    if (stream.writableLength > MAX_WAITING) {
      leftOut += 1;
      return;
    }
    if (leftOut > 0) stream.write(`(${leftOut} lines left out, because nobody read them)\n`);
    leftOut = 0;
    stream.write(`${line}\n`);
  };
}
