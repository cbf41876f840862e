import { AidoError } from "@aido/sdk/protocol";

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const PATTERN = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;
const MOST = 365 * UNITS.d;

/** `30s`, `5m`, `1.5h`, `2d`; `0` and `never` mean no limit. */
export function parseDuration(text: string, option: string): number {
  if (text === "0" || text === "never") return 0;
  const match = PATTERN.exec(text);
  const ms = match ? Math.round(Number(match[1]) * UNITS[match[2] as keyof typeof UNITS]) : 0;
  if (ms < 1 || ms > MOST) {
    throw new AidoError("VALIDATION_ERROR", `${option} cannot be "${text}"`, {
      hint: "Write a number and a unit: 500ms, 30s, 5m, 1h, 2d (at most 365d); 0 means no limit.",
      details: { option, value: text },
    });
  }
  return ms;
}
