import { createHash, randomBytes } from "node:crypto";
import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import type { StoredObject } from "../../core/object-store/object-store.ts";
import { HashedBody } from "./hashed-body.ts";

/** A body on the disk, without a name: whoever is killed when, nothing of it stays. */
export class Spool implements AsyncDisposable {
  readonly stored: StoredObject;
  readonly md5: Buffer;
  readonly #file: FileHandle;

  private constructor(file: FileHandle, stored: StoredObject, md5: Buffer) {
    this.#file = file;
    this.stored = stored;
    this.md5 = md5;
  }

  static async of(
    directory: string,
    body: AsyncIterable<Uint8Array>,
    signal: AbortSignal | undefined,
  ): Promise<Spool> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const path = join(directory, `spool-${randomBytes(8).toString("hex")}`);
    const file = await open(path, "wx+", 0o600);
    try {
      await rm(path);
      const hashed = new HashedBody();
      const md5 = createHash("md5");
      for await (const chunk of hashed.pass(body, signal)) {
        md5.update(chunk);
        await file.writeFile(chunk);
      }
      return new Spool(file, hashed.end(), md5.digest());
    } catch (thrown) {
      await file.close();
      throw thrown;
    }
  }

  read(): AsyncIterable<Uint8Array> {
    return this.#file.createReadStream({ start: 0, autoClose: false, highWaterMark: 256 * 1024 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }
}
