/** Something that holds one of the kernel's watches. */
export interface Held {
  close(): void;
}

/** The kernel gives each user few watches (often 128), and not for aido alone: only those last used are kept. */
export class WatchBudget {
  readonly #most: number;
  readonly #held = new Set<Held>();

  constructor(most = 32) {
    this.#most = most;
  }

  /** It is used now; when there are too many, the one that was not used for the longest time is closed. */
  use(one: Held): void {
    this.#held.delete(one);
    this.#held.add(one);
    const [oldest] = this.#held;
    if (this.#held.size <= this.#most || oldest === undefined) return;
    this.#held.delete(oldest);
    oldest.close();
  }

  release(one: Held): void {
    this.#held.delete(one);
  }
}
