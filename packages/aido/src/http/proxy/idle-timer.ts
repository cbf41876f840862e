/** Fires when nothing has happened for a while. Being touched often costs nothing. */
export class IdleTimer {
  readonly #limitMs: number;
  readonly #onIdle: () => void;
  #touchedAt = performance.now();
  #timer: NodeJS.Timeout;

  constructor(limitMs: number, onIdle: () => void) {
    this.#limitMs = limitMs;
    this.#onIdle = onIdle;
    this.#timer = setTimeout(() => this.#look(), limitMs);
  }

  touch(): void {
    this.#touchedAt = performance.now();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #look(): void {
    const left = this.#touchedAt + this.#limitMs - performance.now();
    if (left <= 1) this.#onIdle();
    else this.#timer = setTimeout(() => this.#look(), left);
  }
}
