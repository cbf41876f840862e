import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

/** A test program compiled to one file, so that it can run as a process of its own and be killed. */
export async function bundle(entry: URL) {
  const directory = mkdtempSync(join(tmpdir(), "aido-bundle-"));
  // Packages are not bundled; they are found as from the sources.
  symlinkSync(
    fileURLToPath(new URL("../../../../node_modules", import.meta.url)),
    join(directory, "node_modules"),
  );
  await build({
    configFile: false,
    logLevel: "silent",
    resolve: { conditions: ["source"] },
    ssr: { resolve: { conditions: ["source"] }, noExternal: [/^@aido\//], external: ["libsql"] },
    build: {
      ssr: fileURLToPath(entry),
      outDir: directory,
      emptyOutDir: false,
      target: "node20",
      rollupOptions: { output: { entryFileNames: "program.mjs", chunkFileNames: "[name]-[hash].mjs" } },
    },
  });
  return {
    program: join(directory, "program.mjs"),
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }),
  };
}
