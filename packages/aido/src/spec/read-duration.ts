import type { SpecReader, SpecValue } from "./spec-reader.ts";
import { MAX_DURATION_MS, parseDuration } from "./units.ts";

/** More than zero and at most 30 days. */
export function readDuration(reader: SpecReader, value: SpecValue): number | undefined {
  const key = value.path.split(".").at(-1) ?? value.path;
  const text = reader.written(value, `${key}: 5m`);
  if (text === undefined) return undefined;
  const ms = parseDuration(text);
  const fix = `Write a number and s, m or h, for example ${key}: 30s, ${key}: 5m or ${key}: 1h.`;
  if (ms === undefined) reader.problem(value, `${value.path} is not a duration`, fix);
  else if (ms === 0) reader.problem(value, `${value.path} must be more than zero`, fix);
  else if (ms > MAX_DURATION_MS)
    reader.problem(value, `${value.path} is more than 30 days`, `At most ${key}: 720h.`);
  else return ms;
  return undefined;
}
