import { createHash } from "node:crypto";
import { posix } from "node:path";
import type { BuildImage } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import type { ContextFile } from "../driver/driver-images.ts";

const MAX_FILES = 10_000;
const MAX_CONTEXT_BYTES = 64 * 1024 * 1024;

/** The files of a build, in the order of their names. Paths stay beneath the context whatever reads them. */
export function contextFiles(files: BuildImage["files"] = {}): readonly ContextFile[] {
  const names = Object.keys(files).sort();
  if (names.length > MAX_FILES) {
    throw new AidoError("PAYLOAD_TOO_LARGE", `A build takes ${MAX_FILES} files at most`, {
      hint: "Pack them into an archive and unpack it with RUN.",
    });
  }
  const context = names.map((path) => toFile(path, files[path] ?? ""));
  const bytes = context.reduce((sum, { content }) => sum + content.byteLength, 0);
  if (bytes > MAX_CONTEXT_BYTES) {
    throw new AidoError("PAYLOAD_TOO_LARGE", `A build takes files of ${MAX_CONTEXT_BYTES} bytes at most`, {
      hint: "Fetch what is larger in the build, with RUN.",
      details: { bytes, limit: MAX_CONTEXT_BYTES },
    });
  }
  const parents = new Set(names.flatMap(parentsOf));
  const both = names.find((path) => parents.has(path));
  if (both !== undefined) throw wrongPath(both, "is a file and a directory");
  return context;
}

/** The same for the same build, and for no other: every part is written with its length. */
export function buildChecksum(
  dockerfile: string,
  files: readonly ContextFile[],
  labels: Readonly<Record<string, string>>,
): string {
  const hash = createHash("sha256");
  const add = (part: string | Uint8Array) => {
    const bytes = typeof part === "string" ? Buffer.from(part) : part;
    hash.update(`${bytes.byteLength}:`).update(bytes);
  };
  add(dockerfile);
  for (const [name, value] of Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))) {
    add(name);
    add(value);
  }
  add("files");
  for (const { path, content, executable } of files) {
    add(path);
    add(executable ? "x" : "-");
    add(content);
  }
  return hash.digest("hex");
}

function toFile(path: string, file: NonNullable<BuildImage["files"]>[string]): ContextFile {
  if (path.startsWith("/") || path.includes("\0") || path.length > 4096 || posix.normalize(path) !== path) {
    throw wrongPath(path, "is not a path beneath the build");
  }
  if (path === ".." || path === "." || path.startsWith("../") || path.endsWith("/")) {
    throw wrongPath(path, "is not a path beneath the build");
  }
  if (path === "Dockerfile") throw wrongPath(path, "is what `dockerfile` holds");
  if (typeof file === "string") return { path, content: Buffer.from(file), executable: false };
  return { path, content: Buffer.from(file.base64, "base64"), executable: file.executable === true };
}

function parentsOf(path: string): string[] {
  const parts = path.split("/");
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join("/"));
}

function wrongPath(path: string, why: string): AidoError {
  return new AidoError("INVALID_PATH", `The file ${JSON.stringify(path.slice(0, 200))} ${why}`, {
    hint: "Name files as app/main.py, relative to the build.",
    details: { field: "files" },
  });
}
