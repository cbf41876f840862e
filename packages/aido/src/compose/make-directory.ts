import { makeDirectories } from "../core/make-directories.ts";

/** A directory of aido's own, with those above it. Raises DATA_DIR_NOT_WRITABLE or DISK_FULL. */
export async function makeDirectory(path: string): Promise<void> {
  try {
    makeDirectories(path);
  } catch (thrown) {
    const { translateSqliteError } = await import("../stores/sqlite/translate-sqlite-error.ts");
    throw translateSqliteError(thrown, path);
  }
}
