import { AidoError } from "@aido/sdk/protocol";
import type { FileRecord } from "../core/files/record-reader.ts";
import type { FileRewrite } from "../core/ssh/file-rewrite.ts";
import type { SequentialRead } from "../core/ssh/sequential-read.ts";

const MAX_OPEN = 64;

export interface OpenFile {
  path: string;
  reader?: SequentialRead;
  writer?: FileRewrite;
}

type Open = OpenFile | AsyncGenerator<FileRecord, void, undefined>;

/** What a client has open, by the handle it was given. */
export class SftpHandles {
  readonly #open = new Map<string, Open>();
  #last = 0;

  checkRoom(): void {
    if (this.#open.size < MAX_OPEN) return;
    throw new AidoError("RATE_LIMITED", `${MAX_OPEN} files are open, which is the most`);
  }

  addFile(file: OpenFile): Buffer {
    return this.#add(file);
  }

  addDirectory(entries: AsyncGenerator<FileRecord, void, undefined>): Buffer {
    this.checkRoom();
    return this.#add(entries);
  }

  file(handle: Buffer): OpenFile {
    const open = this.#open.get(keyOf(handle));
    if (open === undefined || "next" in open) throw unknownHandle();
    return open;
  }

  /** The next names of a directory; none at its end. */
  async names(handle: Buffer, count: number): Promise<readonly FileRecord[]> {
    const open = this.#open.get(keyOf(handle));
    if (open === undefined || !("next" in open)) throw unknownHandle();
    const names: FileRecord[] = [];
    while (names.length < count) {
      const next = await open.next();
      if (next.done === true) break;
      names.push(next.value);
    }
    return names;
  }

  /** Puts in place what was written. */
  async close(handle: Buffer): Promise<void> {
    const open = this.#open.get(keyOf(handle));
    if (open === undefined) throw unknownHandle();
    this.#open.delete(keyOf(handle));
    if ("next" in open) await open.return();
    else {
      open.reader?.close();
      try {
        await open.writer?.close();
      } finally {
        open.writer?.abort();
      }
    }
  }

  /** The client has gone: what it had not closed stays as it was. */
  abort(): void {
    for (const open of this.#open.values()) {
      if ("next" in open) void open.return().catch(() => undefined);
      else {
        open.reader?.close();
        open.writer?.abort();
      }
    }
    this.#open.clear();
  }

  #add(open: Open): Buffer {
    this.#last += 1;
    const handle = Buffer.from(String(this.#last));
    this.#open.set(keyOf(handle), open);
    return handle;
  }
}

function keyOf(handle: Buffer): string {
  return handle.toString("latin1");
}

function unknownHandle(): AidoError {
  return new AidoError("VALIDATION_ERROR", "There is no such handle");
}
