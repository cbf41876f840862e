import { AidoError } from "@aido/sdk/protocol";
import type { CommitLog } from "./commit-log.ts";

/** A file takes whole blocks, however little it holds. */
const BLOCK_BYTES = 4096;
/** Noted in the log so much at a time; a process that is killed leaves less than that uncounted. */
const NOTE_BYTES = 1024 * 1024;

/** How much a history takes on the disk, whichever processes wrote it, and how much it may. */
export class HistorySize {
  readonly #log: CommitLog;
  readonly #maxBytes: number;
  #unnoted = 0;

  constructor(log: CommitLog, maxBytes: number) {
    this.#log = log;
    this.#maxBytes = maxBytes;
  }

  /** A file of so many bytes was written. */
  add(bytes: number): void {
    this.#unnoted += Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES;
    if (this.#unnoted >= NOTE_BYTES) this.note();
  }

  note(): void {
    if (this.#unnoted === 0) return;
    this.#log.grow(this.#unnoted);
    this.#unnoted = 0;
  }

  /** Raises HISTORY_FULL when nothing more is to be kept. */
  mustHaveRoom(): void {
    if (this.#log.bytes() + this.#unnoted < this.#maxBytes) return;
    const message = `The history of this workspace has its ${this.#maxBytes} bytes and keeps nothing more`;
    throw new AidoError("HISTORY_FULL", message, {
      hint: "Raise `history.maxBytes`, or go on in a new sandbox.",
      details: { maxBytes: this.#maxBytes },
    });
  }
}
