import { statSync } from "node:fs";
import { join } from "node:path";

/** Where the bundle lies, from the `dist` directory that it was made in. */
export const bundlePlace = (dist: string) => ({
  main: join(dist, "bundle/main.cjs"),
  program: join(dist, "bundle/aido.cjs"),
  unbundled: join(dist, "cli/main.js"),
});

/** After a run of the compiler alone, only the compiled files are up to date. */
export function isBundleCurrent(dist: string): boolean {
  const madeAt = modifiedAt(bundlePlace(dist).program);
  return madeAt > 0 && madeAt >= modifiedAt(join(dist, "tsconfig.tsbuildinfo"));
}

function modifiedAt(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
