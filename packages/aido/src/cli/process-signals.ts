import { writeSync } from "node:fs";
import type { SignalName, SignalSource } from "./context.ts";

type SignalProcess = Pick<
  NodeJS.Process,
  "on" | "off" | "removeAllListeners" | "kill" | "pid" | "stdout" | "stderr"
>;

const STDOUT = 1;

export class ProcessSignals implements SignalSource {
  readonly #process: SignalProcess;
  readonly #atExit = new Set<string>();

  constructor(process: SignalProcess) {
    this.#process = process;
    process.on("exit", () => this.restoreTerminal());
  }

  on(signal: SignalName, handler: () => void): () => void {
    this.#process.on(signal, handler);
    return () => this.#process.off(signal, handler);
  }

  die(signal: SignalName): void {
    // Dying by the signal itself is what shells look at, and it waits for nothing.
    this.restoreTerminal();
    this.#process.removeAllListeners(signal);
    this.#process.kill(this.#process.pid, signal);
  }

  suspend(): void {
    this.#process.kill(this.#process.pid, "SIGSTOP");
  }

  atExit(sequence: string): () => void {
    this.#atExit.add(sequence);
    return () => this.#atExit.delete(sequence);
  }

  /** Does now what `atExit` asked for, so that what follows is seen. */
  restoreTerminal(): void {
    for (const sequence of this.#atExit) {
      try {
        // Nothing that waits is done any more once a process ends.
        writeSync(STDOUT, sequence);
      } catch {
        // The terminal is gone or held; there is nothing to give back.
      }
    }
    this.#atExit.clear();
  }

  terminalSize(): { rows: number; cols: number } {
    const stream = this.#process.stdout.isTTY ? this.#process.stdout : this.#process.stderr;
    return { rows: stream.rows || 24, cols: stream.columns || 80 };
  }
}
