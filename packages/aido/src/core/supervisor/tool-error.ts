import { AidoError, type ErrorCode } from "@aido/sdk/protocol";
import { printable } from "./refusal.ts";

const CODES: Readonly<Record<string, ErrorCode>> = {
  ENOENT: "FILE_NOT_FOUND",
  EACCES: "FILE_NOT_PERMITTED",
  EPERM: "FILE_NOT_PERMITTED",
  EROFS: "FILE_NOT_PERMITTED",
  EEXIST: "FILE_EXISTS",
  ENOTEMPTY: "FILE_EXISTS",
  ENOSPC: "DISK_FULL",
  EDQUOT: "DISK_FULL",
  EISDIR: "INVALID_PATH",
  ENOTDIR: "INVALID_PATH",
  ELOOP: "INVALID_PATH",
  ENAMETOOLONG: "INVALID_PATH",
  EINVAL: "INVALID_PATH",
};

const WRITERS = new Set(["write", "mkdir", "move", "remove", "untar"]);

/** From the line `ERRNO message` that a builtin tool ends with. The text comes from inside and may say anything. */
export function toolError(argv: readonly string[], stderr: string): AidoError {
  const [, errno = "", message = ""] = /^(E[A-Z0-9]+) ?(.*)/.exec(stderr) ?? [];
  const tool = argv[0] ?? "";
  const fallback = WRITERS.has(tool) ? "FILE_CREATION_FAILED" : "FILE_DOWNLOAD_FAILED";
  const path = argv[2] ?? "";
  const why = printable(message || stderr).trim() || "it gave no reason";
  return new AidoError(CODES[errno] ?? fallback, `Cannot ${tool} ${printable(path) || "."}: ${why}`, {
    details: { path, ...(errno === "" ? {} : { errno }) },
  });
}
