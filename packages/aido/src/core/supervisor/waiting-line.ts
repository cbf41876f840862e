/** Callers that wait for the same thing, first come first served. One that gives up leaves nothing behind. */
export class WaitingLine {
  readonly #waiting = new Set<() => void>();

  get length(): number {
    return this.#waiting.size;
  }

  wait(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        this.#waiting.delete(go);
        reject(signal?.reason as Error);
      };
      const go = () => {
        this.#waiting.delete(go);
        signal?.removeEventListener("abort", giveUp);
        resolve();
      };
      if (signal?.aborted) {
        reject(signal.reason as Error);
        return;
      }
      this.#waiting.add(go);
      signal?.addEventListener("abort", giveUp, { once: true });
    });
  }

  /** False when nobody waits. */
  wakeOne(): boolean {
    const [first] = this.#waiting;
    first?.();
    return first !== undefined;
  }

  wakeAll(): void {
    for (const go of [...this.#waiting]) go();
  }
}
