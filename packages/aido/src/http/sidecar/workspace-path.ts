import { posix } from "node:path";
import { AidoError } from "@aido/sdk/protocol";

/**
 * A path as it lies beneath the workspace. What leads out of it by its letters is refused here; links cannot lead out,
 * because the sandbox resolves a relative path as if the workspace were its root.
 */
export function workspacePath(workdir: string, path: string): string {
  const relative = posix.relative(workdir, posix.resolve(workdir, path));
  if (relative !== ".." && !relative.startsWith("../")) return relative === "" ? "." : relative;
  throw new AidoError("FORBIDDEN", `${JSON.stringify(path.slice(0, 200))} is outside the workspace`, {
    hint: `The workspace is ${workdir}.`,
  });
}
