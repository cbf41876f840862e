import type { ByteSink } from "./byte-sink.ts";

/** NO_COLOR forbids, FORCE_COLOR demands; otherwise a terminal that is not dumb has colours. */
export function usesColour(env: Readonly<Record<string, string | undefined>>, sink: ByteSink): boolean {
  if (env["NO_COLOR"]) return false;
  const forced = env["FORCE_COLOR"];
  if (forced !== undefined) return forced !== "0" && forced !== "false";
  return sink.isTerminal && env["TERM"] !== "dumb";
}
