import { firstChars, oneLine } from "./fit-text.ts";

const MAX_ERRORS = 50;
const MAX_ERROR_CHARS = 500;
/** With the envelope around them they stay below what a message may have. */
const MAX_BYTES = 48 * 1024;

/** As many entries as a completion may have, each as long as it may be, and all together within one message. */
export function fitErrors(errors: readonly string[]): readonly string[] {
  const left = errors.length - MAX_ERRORS;
  const kept = left <= 0 ? errors : [...errors.slice(0, MAX_ERRORS - 1), `and ${left + 1} more`];
  for (let most = MAX_ERROR_CHARS; ; most = Math.floor(most / 2)) {
    const fitting = kept.map((error) => firstChars(oneLine(error), most));
    if (Buffer.byteLength(JSON.stringify(fitting)) <= MAX_BYTES) return fitting;
  }
}
