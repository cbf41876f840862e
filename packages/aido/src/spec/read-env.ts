import type { SpecReader, SpecValue } from "./spec-reader.ts";

export function readEnv(reader: SpecReader, value: SpecValue): Record<string, string> | undefined {
  const entries = reader.entries(value, "NAME: value");
  if (entries === undefined) return undefined;
  const env: Record<string, string> = {};
  for (const [name, entry] of entries) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      reader.problem(
        { node: entry.key, path: entry.value.path },
        `${JSON.stringify(name)} is not a variable's name`,
        "Use letters, digits and _, not starting with a digit.",
      );
      continue;
    }
    const text = reader.written(entry.value, `${name}: "1"`);
    if (text?.includes("\0")) reader.problem(entry.value, `${entry.value.path} has a NUL byte`, "Remove it.");
    else if (text !== undefined) env[name] = text;
  }
  return env;
}
