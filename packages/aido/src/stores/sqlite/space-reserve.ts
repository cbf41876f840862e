import { existsSync, unlinkSync, writeFileSync } from "node:fs";

const BYTES = 1_048_576;

/**
 * Space that is kept in a file of its own beside the database. When the disk is full it is given back, so that what
 * happened can still be recorded and sandboxes can still be destroyed.
 */
export class SpaceReserve {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** Best effort: a disk that has no room for it now has none to keep. */
  keep(): void {
    if (existsSync(this.#path)) return;
    try {
      writeFileSync(this.#path, Buffer.alloc(BYTES), { flag: "wx", mode: 0o600 });
    } catch (thrown) {
      // Another process was quicker, and it is its to keep.
      if ((thrown as NodeJS.ErrnoException).code !== "EEXIST") this.release();
    }
  }

  /** False when there was nothing to give back. */
  release(): boolean {
    try {
      unlinkSync(this.#path);
      return true;
    } catch {
      return false;
    }
  }
}
