import type { SignalName, SignalSource } from "./context.ts";

type SignalProcess = Pick<
  NodeJS.Process,
  "on" | "off" | "removeAllListeners" | "kill" | "pid" | "stdout" | "stderr"
>;

export class ProcessSignals implements SignalSource {
  readonly #process: SignalProcess;

  constructor(process: SignalProcess) {
    this.#process = process;
  }

  on(signal: SignalName, handler: () => void): () => void {
    this.#process.on(signal, handler);
    return () => this.#process.off(signal, handler);
  }

  die(signal: SignalName): void {
    // Dying by the signal itself is what shells look at, and it waits for nothing.
    this.#process.removeAllListeners(signal);
    this.#process.kill(this.#process.pid, signal);
  }

  terminalSize(): { rows: number; cols: number } {
    const stream = this.#process.stdout.isTTY ? this.#process.stdout : this.#process.stderr;
    return { rows: stream.rows || 24, cols: stream.columns || 80 };
  }
}
