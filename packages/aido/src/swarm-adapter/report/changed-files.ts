const MAX_PATH_CHARS = 1_000;
const MAX_PER_MESSAGE = 200;
/** Leaves room for the rest of a message of 64 KB. */
const MAX_BYTES_PER_MESSAGE = 40 * 1024;
/** More than anyone looks at; a worker that changes more is told by its branch. */
const MAX_PATHS = 20_000;

/** Paths on their way to the host: each once, in portions that fit a message. */
export class ChangedFiles {
  readonly #known = new Set<string>();
  #waiting: string[] = [];

  get size(): number {
    return this.#waiting.length;
  }

  /** Whether there was a new one. Paths that no message can hold are left out. */
  add(paths: readonly string[]): boolean {
    const fresh = paths.filter(
      (path) => path !== "" && path.length <= MAX_PATH_CHARS && !this.#known.has(path),
    );
    for (const path of fresh.slice(0, MAX_PATHS - this.#known.size)) {
      this.#known.add(path);
      this.#waiting.push(path);
    }
    return this.#waiting.length > 0;
  }

  take(): readonly string[] {
    let bytes = 0;
    let count = 0;
    for (const path of this.#waiting.slice(0, MAX_PER_MESSAGE)) {
      bytes += Buffer.byteLength(JSON.stringify(path)) + 1;
      if (bytes > MAX_BYTES_PER_MESSAGE) break;
      count += 1;
    }
    const portion = this.#waiting.slice(0, count);
    this.#waiting = this.#waiting.slice(count);
    return portion;
  }
}
