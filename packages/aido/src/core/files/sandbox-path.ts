import { AidoError } from "@aido/sdk/protocol";

const MAX_PATH_BYTES = 4_096;

export interface SandboxPath {
  /** What the path cannot lead out of. */
  root: string;
  path: string;
}

/** Relative paths lie beneath the workdir, absolute ones beneath the sandbox's own root. */
export function toSandboxPath(workdir: string, path: string): SandboxPath {
  if (path === "")
    throw new AidoError("INVALID_PATH", "The path is empty", { hint: "Use `.` for the workdir." });
  if (path.includes("\0")) throw new AidoError("INVALID_PATH", "The path has a NUL byte");
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) {
    throw new AidoError("INVALID_PATH", `The path has over ${MAX_PATH_BYTES} bytes`);
  }
  return { root: path.startsWith("/") ? "/" : workdir, path };
}
