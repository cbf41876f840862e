import { createHash } from "node:crypto";
import { Worker } from "node:worker_threads";
import { AidoError } from "@aido/sdk/protocol";

const PIECE_BYTES = 1024 * 1024;
const PIECES = 4;
/** Of Node alone, so that no file has to be found wherever this is bundled. */
const THREAD = `
const { createHash } = require("node:crypto");
const { parentPort, workerData } = require("node:worker_threads");
const hash = createHash("sha256");
parentPort.on("message", (piece) => {
  if (piece !== null) hash.update(workerData[piece.at].subarray(0, piece.bytes));
  parentPort.postMessage(piece === null ? hash.digest("hex") : piece.at);
});
`;

interface Piece {
  /** Which part of the shared memory it is in. */
  readonly at: number;
  readonly bytes: number;
}

/**
 * SHA-256 of much data on a thread of its own: it takes as long as all else that is done with the data, and this thread
 * goes on meanwhile. What fits in the shared memory is not worth a thread. For one caller at a time, who disposes of it.
 */
export class ThreadedSha256 implements AsyncDisposable {
  readonly #memory = Array.from({ length: PIECES }, () => new Uint8Array(new SharedArrayBuffer(PIECE_BYTES)));
  readonly #free = Array.from({ length: PIECES }, (_, at) => at);
  /** Before there is a thread. */
  readonly #held: Piece[] = [];
  #filling: Piece | undefined;
  #thread: Worker | undefined;
  #digest: string | undefined;
  #failure: AidoError | undefined;
  #wake: () => void = () => undefined;

  /** What it is given is copied. */
  async update(data: Uint8Array): Promise<void> {
    for (let done = 0; done < data.byteLength; ) {
      if (this.#filling === undefined && this.#free.length === 0) {
        await this.#until(() => this.#free.length > 0);
      }
      const { at, bytes } = this.#filling ?? { at: this.#free.shift() ?? 0, bytes: 0 };
      const part = data.subarray(done, done + PIECE_BYTES - bytes);
      this.#memory[at]?.set(part, bytes);
      done += part.byteLength;
      this.#filling = { at, bytes: bytes + part.byteLength };
      if (this.#filling.bytes === PIECE_BYTES) this.#pass();
    }
  }

  /** In hex; nothing may come after it. */
  async digest(): Promise<string> {
    this.#pass();
    if (this.#thread === undefined) {
      const hash = createHash("sha256");
      for (const { at, bytes } of this.#held) hash.update(this.#memory[at]?.subarray(0, bytes) ?? "");
      return hash.digest("hex");
    }
    this.#thread.postMessage(null);
    await this.#until(() => this.#digest !== undefined);
    return this.#digest ?? "";
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#thread?.terminate();
  }

  #pass(): void {
    if (this.#filling === undefined) return;
    this.#held.push(this.#filling);
    this.#filling = undefined;
    if (this.#free.length === 0) this.#thread ??= this.#begin();
    if (this.#thread !== undefined) for (const piece of this.#held.splice(0)) this.#thread.postMessage(piece);
  }

  #begin(): Worker {
    const thread = new Worker(THREAD, { eval: true, workerData: this.#memory });
    thread.on("message", (said: number | string) => {
      if (typeof said === "number") this.#free.push(said);
      else this.#digest = said;
      this.#wake();
    });
    thread.on("error", (cause) => this.#fail(cause));
    thread.on("exit", () => this.#fail());
    return thread;
  }

  #fail(cause?: unknown): void {
    this.#failure ??= new AidoError("INTERNAL_SERVER_ERROR", "The thread that hashes has ended", { cause });
    this.#wake();
  }

  async #until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      if (this.#failure !== undefined) throw this.#failure;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
