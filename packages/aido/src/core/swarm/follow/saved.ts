/**
 * Writes what is newest, one write at a time: however often something changes, and however slow the disk is, the last
 * value gets there and no queue grows.
 */
export class Saved {
  readonly #write: () => Promise<void>;
  readonly #onError: (thrown: unknown) => void;
  #isDue = false;
  #writing: Promise<void> | undefined;

  constructor(write: () => Promise<void>, onError: (thrown: unknown) => void) {
    this.#write = write;
    this.#onError = onError;
  }

  /** Soon, by itself. */
  due(): void {
    this.#isDue = true;
    this.#writing ??= this.#run();
  }

  /** What is due is written then, or could not be. */
  async settled(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  async #run(): Promise<void> {
    try {
      while (this.#isDue) {
        this.#isDue = false;
        try {
          await this.#write();
        } catch (thrown) {
          this.#onError(thrown);
        }
      }
    } finally {
      this.#writing = undefined;
    }
  }
}
