import { spawnSync } from "node:child_process";
import type { ReadStream } from "node:tty";
import type { Keyboard } from "./context.ts";

/** The process's standard input. It is only touched when a command reads it, so that it never keeps a process alive. */
export class ProcessKeyboard implements Keyboard {
  readonly #open: () => ReadStream;
  #stopped = false;

  constructor(open: () => ReadStream) {
    this.#open = open;
  }

  get isTerminal(): boolean {
    return this.#open().isTTY === true;
  }

  async *chunks(): AsyncIterable<Uint8Array> {
    const stream = this.#open();
    try {
      for await (const chunk of stream) {
        if (this.#stopped) return;
        yield chunk as Uint8Array;
      }
    } catch (thrown) {
      // `stop` destroys the stream, which ends the loop above with a premature close.
      if (!this.#stopped) throw thrown;
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#open().destroy();
  }

  setRawMode(raw: boolean): void {
    const stream = this.#open();
    if (!stream.isTTY || stream.destroyed) return;
    stream.setRawMode(raw);
    if (raw) passOutput();
  }
}

/**
 * Node's raw mode still has the terminal put a carriage return before each line feed. The sandbox's own terminal has
 * done that where it was wanted; a program that moves down by a line feed would find itself at the left edge. Leaving
 * raw mode puts this back as well. Without stty it stays as it is.
 */
function passOutput(): void {
  spawnSync("stty", ["-opost"], {
    stdio: ["inherit", "ignore", "ignore"],
    timeout: 1_000,
    killSignal: "SIGKILL",
  });
}
