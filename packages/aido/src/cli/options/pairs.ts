import { AidoError } from "@aido/sdk/protocol";

/** `NAME=value` options. Without `=` the value is taken from `lookup`, so that secrets stay out of the command line. */
export function parsePairs(
  pairs: readonly string[],
  option: string,
  lookup?: (name: string) => string | undefined,
): Record<string, string> {
  const result: Record<string, string> = {};
  for (const pair of pairs) {
    const at = pair.indexOf("=");
    const name = at < 0 ? pair : pair.slice(0, at);
    const value = at < 0 ? lookup?.(name) : pair.slice(at + 1);
    if (name === "" || value === undefined || `${name}${value}`.includes("\0")) {
      throw new AidoError("VALIDATION_ERROR", `${option} cannot be "${pair}"`, {
        hint:
          lookup === undefined
            ? `Write ${option} NAME=value.`
            : `Write ${option} NAME=value, or ${option} NAME for a variable that is set here.`,
        details: { option },
      });
    }
    Object.defineProperty(result, name, { value, enumerable: true, configurable: true, writable: true });
  }
  return result;
}
