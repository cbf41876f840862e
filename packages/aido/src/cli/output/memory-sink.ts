import type { ByteSink } from "./byte-sink.ts";

/** Keeps what was written; for tests and for text that is printed later. */
export class MemorySink implements ByteSink {
  readonly isTerminal: boolean;
  readonly columns: number | undefined;
  readonly #chunks: Uint8Array[] = [];

  constructor(columns?: number) {
    this.columns = columns;
    this.isTerminal = columns !== undefined;
  }

  write(data: Uint8Array | string): Promise<void> {
    this.#chunks.push(Buffer.from(data as Uint8Array));
    return Promise.resolve();
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  get text(): string {
    return this.bytes.toString();
  }
}
