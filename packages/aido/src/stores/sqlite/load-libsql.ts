import { createRequire } from "node:module";
import type Database from "libsql";
import { libsqlTarget } from "./libsql-target.ts";

/**
 * Loads libsql without the full process report that it asks for only to tell glibc from musl: making one takes longer
 * than opening a database. The bundle has a shorter way.
 */
export function loadLibsql(): typeof Database {
  const require = createRequire(import.meta.url);
  const target = libsqlTarget();
  if (target !== undefined) {
    const targets = createRequire(require.resolve("libsql"))("@neon-rs/load") as Targets;
    targets.currentTarget = () => target;
  }
  return require("libsql") as typeof Database;
}

interface Targets {
  currentTarget: () => string;
}
