/** How much of each of several things. */
export type Amounts<Thing extends string> = Readonly<Record<Thing, number>>;

export interface Bound<Thing extends string> {
  /** What is in use, perhaps with some that is just being made. */
  used(asked: Amounts<Thing>): Promise<Amounts<Thing>>;
  /** Why there may not be so much more; undefined when there may. */
  refusal(used: Amounts<Thing>, asked: Amounts<Thing>): Error | undefined;
}

/** Bounds how much of something there is, in this process. Asking for much at once gets no more than one after the other. */
export class AtMost<Thing extends string> {
  readonly #making = new Map<Promise<unknown>, Amounts<Thing>>();
  #done = 0;

  /** Makes what is asked for, or raises the refusal. */
  async make<Made>(asked: Amounts<Thing>, bound: Bound<Thing>, make: () => Promise<Made>): Promise<Made> {
    for (;;) {
      const done = this.#done;
      const used = await bound.used(asked);
      // One that was done meanwhile is perhaps not counted.
      if (this.#done !== done) continue;
      // No await from here on: whoever comes next must see this one.
      const refusal = bound.refusal(this.#withMaking(used), asked);
      if (refusal === undefined) return await this.#tracked(asked, make());
      if (this.#making.size === 0) throw refusal;
      // Being made and already counted is twice, so near the limit it is waited for and counted again.
      await Promise.allSettled(this.#making.keys());
    }
  }

  #withMaking(used: Amounts<Thing>): Amounts<Thing> {
    const sums: Record<string, number> = { ...used };
    for (const amounts of this.#making.values()) {
      for (const [thing, amount] of Object.entries<number>(amounts))
        sums[thing] = (sums[thing] ?? 0) + amount;
    }
    return sums as Amounts<Thing>;
  }

  #tracked<Made>(asked: Amounts<Thing>, work: Promise<Made>): Promise<Made> {
    const made = work.finally(() => {
      this.#done += 1;
      this.#making.delete(made);
    });
    this.#making.set(made, asked);
    return made;
  }
}
