import { AidoError } from "@aido/sdk/protocol";
import type { ScanRecord } from "./scan-records.ts";
import type { WorkspaceReader } from "./workspace-scanner.ts";

const HEADER_BYTES = 9;

/** Contents of many files in one exec; undefined for what is gone, unreadable or no longer a file. */
export async function* readContents(
  reader: WorkspaceReader,
  records: readonly ScanRecord[],
  maxFileBytes: number,
): AsyncGenerator<{ record: ScanRecord; content: Buffer | undefined }> {
  if (records.length === 0) return;
  const paths = Buffer.from(records.map((record) => `${record.path}\0`).join(""), "latin1");
  const source = new ByteSource(reader.tool(["cat"], paths));
  for (const record of records) {
    const header = await source.take(HEADER_BYTES);
    const status = header.readUInt8(0);
    const length = Number(header.readBigUInt64LE(1));
    // The file may have grown since the scan; what is too large to hold is read past, not kept.
    if (length > maxFileBytes) {
      await source.skip(length);
      yield { record, content: undefined };
      continue;
    }
    const content = await source.take(length);
    yield { record, content: status === 0 || status === 4 ? content : undefined };
  }
}

/** Exact numbers of bytes from a stream of chunks. */
class ByteSource {
  readonly #iterator: AsyncIterator<Uint8Array>;
  #parts: Buffer[] = [];
  #length = 0;

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#iterator = chunks[Symbol.asyncIterator]();
  }

  async take(count: number): Promise<Buffer> {
    while (this.#length < count) await this.#pull();
    const whole = this.#parts.length === 1 ? (this.#parts[0] ?? Buffer.alloc(0)) : Buffer.concat(this.#parts);
    this.#parts = [whole.subarray(count)];
    this.#length -= count;
    return whole.subarray(0, count);
  }

  async skip(count: number): Promise<void> {
    let left = count;
    while (left > 0) {
      if (this.#length === 0) await this.#pull();
      const part = await this.take(Math.min(left, this.#length));
      left -= part.length;
    }
  }

  async #pull(): Promise<void> {
    const { done, value } = await this.#iterator.next();
    if (done === true)
      throw new AidoError("GIT_COMMIT_FAILED", "The sandbox ended while its files were read");
    this.#parts.push(Buffer.from(value));
    this.#length += value.length;
  }
}
