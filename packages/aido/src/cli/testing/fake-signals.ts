import type { SignalName, SignalSource } from "../context.ts";

export class FakeSignals implements SignalSource {
  readonly deaths: SignalName[] = [];
  size = { rows: 24, cols: 80 };
  readonly #handlers = new Map<SignalName, Set<() => void>>();

  on(signal: SignalName, handler: () => void): () => void {
    const handlers = this.#handlers.get(signal) ?? new Set();
    handlers.add(handler);
    this.#handlers.set(signal, handlers);
    return () => handlers.delete(handler);
  }

  die(signal: SignalName): void {
    this.deaths.push(signal);
  }

  suspensions = 0;
  /** What is still to be written at the end. */
  readonly atEnd = new Set<string>();

  suspend(): void {
    this.suspensions += 1;
  }

  atExit(sequence: string): () => void {
    this.atEnd.add(sequence);
    return () => this.atEnd.delete(sequence);
  }

  terminalSize(): { rows: number; cols: number } {
    return this.size;
  }

  send(signal: SignalName): void {
    for (const handler of [...(this.#handlers.get(signal) ?? [])]) handler();
  }

  /** How many handlers are left; a command that ended leaves none. */
  get listening(): number {
    return [...this.#handlers.values()].reduce((sum, handlers) => sum + handlers.size, 0);
  }
}
