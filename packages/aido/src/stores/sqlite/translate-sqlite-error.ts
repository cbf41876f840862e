import { AidoError, isAidoError } from "@aido/sdk/protocol";

/** The one place where SQLite's and the file system's failures become aido's. */
export function translateSqliteError(thrown: unknown, file: string): unknown {
  if (!(thrown instanceof Error) || isAidoError(thrown)) return thrown;
  const code = String((thrown as { code?: unknown }).code ?? "");
  const options = { cause: thrown, details: { file } };
  if (code === "ENOSPC" || code === "EDQUOT" || code.startsWith("SQLITE_FULL")) {
    return new AidoError("DISK_FULL", `No space left to write ${file}`, {
      ...options,
      hint: "Free some space, for example with `aido sandbox destroy --all`, and try again.",
    });
  }
  if (code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_LOCKED")) {
    return new AidoError("STORE_UNAVAILABLE", `Another process keeps ${file} locked`, {
      ...options,
      hint: "Try again; if it goes on, look for a hung aido process.",
    });
  }
  if (isRefusal(code)) {
    return new AidoError("DATA_DIR_NOT_WRITABLE", `Cannot write ${file}: ${thrown.message}`, {
      ...options,
      hint: "Choose another directory with `--data-dir` or AIDO_DATA_DIR, or change its permissions.",
    });
  }
  if (code.startsWith("SQLITE_NOTADB") || code.startsWith("SQLITE_CORRUPT")) {
    return new AidoError("STORE_UNAVAILABLE", `${file} is damaged or not a database of aido`, {
      ...options,
      hint: "Move the file away; sandboxes that still run can be seen in the backend's own listings.",
    });
  }
  if (code.startsWith("SQLITE_IOERR")) {
    return new AidoError("STORE_UNAVAILABLE", `Reading or writing ${file} failed`, options);
  }
  return thrown;
}

function isRefusal(code: string): boolean {
  return (
    ["EACCES", "EPERM", "EROFS", "ENOTDIR", "EEXIST", "EISDIR", "ENOENT", "ELOOP", "ENAMETOOLONG"].includes(
      code,
    ) ||
    code.startsWith("SQLITE_CANTOPEN") ||
    code.startsWith("SQLITE_READONLY") ||
    code.startsWith("SQLITE_PERM")
  );
}
