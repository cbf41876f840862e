import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

/** Which of libsql's binaries is for this process; undefined where libsql has to find out by itself. */
export function libsqlTarget(): string | undefined {
  if (process.platform !== "linux" || (process.arch !== "x64" && process.arch !== "arm64")) return undefined;
  // What this process is linked with, whatever else is installed.
  const libc = /\/ld-musl-/.test(readFileSync("/proc/self/maps", "latin1")) ? "musl" : "gnu";
  return `linux-${process.arch}-${libc}`;
}

/** That binary. Package managers put it beside libsql, and most of them also where everybody finds it. */
export function loadNative(from: string): unknown {
  const name = `@libsql/${libsqlTarget()}`;
  const require = createRequire(from);
  try {
    return require(name);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== "MODULE_NOT_FOUND") throw thrown;
    return createRequire(require.resolve("libsql"))(name);
  }
}
