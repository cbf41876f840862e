import { createRequire } from "node:module";
import type Database from "libsql";

/**
 * Loads libsql without the full process report that it asks for only to tell glibc from musl: making one takes longer
 * than opening a database. On Linux the interpreter named in Node's own binary says the same.
 */
export function loadLibsql(): typeof Database {
  const require = createRequire(import.meta.url);
  if (process.platform === "linux") nameTarget(createRequire(require.resolve("libsql")));
  return require("libsql") as typeof Database;
}

interface Targets {
  currentTarget: () => string;
}

function nameTarget(require: NodeJS.Require): void {
  const { familySync, MUSL } = require("detect-libc") as { familySync: () => string | null; MUSL: string };
  const family = process.arch === "x64" || process.arch === "arm64" ? familySync() : null;
  if (family === null) return;
  const targets = require("@neon-rs/load") as Targets;
  targets.currentTarget = () => `linux-${process.arch}-${family === MUSL ? "musl" : "gnu"}`;
}
