import { MAX_OUTPUT_CHARS } from "./config.ts";

/** Cuts at `maxLength` characters and says so. Never splits a surrogate pair. */
export function truncateOutput(output: string, maxLength: number = MAX_OUTPUT_CHARS): string {
  if (output.length <= maxLength) return output;
  const last = output.charCodeAt(maxLength - 1);
  const end = last >= 0xd800 && last <= 0xdbff ? maxLength - 1 : maxLength;
  return `${output.slice(0, end)}\n[...truncated at ${maxLength} chars...]`;
}
