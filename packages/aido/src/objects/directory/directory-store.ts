import { createHash, randomBytes } from "node:crypto";
import { type FileHandle, mkdir, open, readdir, rename, rm, rmdir, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { checkKey, objectNotFound } from "../../core/object-store/object-key.ts";
import type {
  GetOptions,
  ObjectInfo,
  ObjectOptions,
  ObjectStore,
  StoredObject,
} from "../../core/object-store/object-store.ts";

const BEGIN_ATTEMPTS = 5;
const READ_BYTES = 2 * 1024 * 1024;
const UNFINISHED = ".aido-unfinished-";
/** No upload takes longer; what is older was left by a process that was killed. */
const ABANDONED_MS = 24 * 3_600_000;

/** Objects as files of a directory that is the operator's own. */
export class DirectoryStore implements ObjectStore {
  readonly #root: string;

  constructor(root: string) {
    this.#root = resolve(root);
  }

  async put(
    key: string,
    body: AsyncIterable<Uint8Array>,
    options: ObjectOptions = {},
  ): Promise<StoredObject> {
    const path = this.#path(key);
    const hash = createHash("sha256");
    let bytes = 0;
    const { file, temporary } = await begin(dirname(path));
    try {
      try {
        for await (const chunk of body) {
          options.signal?.throwIfAborted();
          hash.update(chunk);
          bytes += chunk.byteLength;
          await file.writeFile(chunk);
        }
        options.signal?.throwIfAborted();
        await file.datasync();
      } finally {
        await file.close();
      }
      await rename(temporary, path);
    } catch (thrown) {
      await rm(temporary, { force: true });
      throw thrown;
    }
    await syncDirectory(dirname(path));
    return { bytes, sha256: hash.digest("hex") };
  }

  async get(key: string, options: GetOptions = {}): Promise<AsyncIterable<Uint8Array>> {
    options.signal?.throwIfAborted();
    const path = this.#path(key);
    const file = await open(path, "r").catch(absent);
    if (file === undefined) throw objectNotFound(pathToFileURL(path).href);
    if (!(await file.stat()).isFile()) {
      await file.close();
      throw objectNotFound(pathToFileURL(path).href);
    }
    if (options.isTransient === true) return inTurns(file, options.signal);
    return file.createReadStream({ highWaterMark: 256 * 1024, ...withSignal(options.signal) });
  }

  async head(key: string, options: ObjectOptions = {}): Promise<ObjectInfo | undefined> {
    options.signal?.throwIfAborted();
    const found = await stat(this.#path(key)).catch(absent);
    return found?.isFile() === true ? { bytes: found.size } : undefined;
  }

  async remove(key: string, options: ObjectOptions = {}): Promise<void> {
    options.signal?.throwIfAborted();
    const path = this.#path(key);
    await rm(path, { force: true });
    for (let above = dirname(path); above !== this.#root; above = dirname(above)) {
      // One that is not empty, or is not ours to remove, stays.
      const isGone = await rmdir(above).then(
        () => true,
        () => false,
      );
      if (!isGone) return;
    }
  }

  #path(key: string): string {
    const path = join(this.#root, checkKey(key));
    // A name of ours would be taken for an unfinished upload and removed.
    if (basename(path).startsWith(UNFINISHED)) throw objectNotFound(pathToFileURL(path).href);
    return path;
  }
}

/** One buffer is read into while the other is looked at: many new ones keep the collector of memory at work. */
async function* inTurns(
  file: FileHandle,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array, void, undefined> {
  const read = (buffer: Buffer) => file.read(buffer, 0, buffer.length);
  let [current, other] = [Buffer.allocUnsafeSlow(READ_BYTES), Buffer.allocUnsafeSlow(READ_BYTES)];
  let reading = read(current);
  try {
    for (;;) {
      const { bytesRead } = await reading;
      signal?.throwIfAborted();
      if (bytesRead === 0) return;
      reading = read(other);
      // Heard of when it is its turn.
      reading.catch(() => undefined);
      yield current.subarray(0, bytesRead);
      [current, other] = [other, current];
    }
  } finally {
    await reading.catch(() => undefined);
    await file.close();
  }
}

function withSignal(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

function absent(thrown: NodeJS.ErrnoException): undefined {
  if (thrown.code === "ENOENT" || thrown.code === "ENOTDIR") return undefined;
  throw thrown;
}

/** A directory that was empty may be removed with the last object in it until there is a file. */
async function begin(directory: string): Promise<{ file: FileHandle; temporary: string }> {
  const temporary = join(directory, `${UNFINISHED}${randomBytes(8).toString("hex")}`);
  for (let attempt = 1; ; attempt += 1) {
    try {
      // It too fails when what was there a moment ago is gone.
      await mkdir(directory, { recursive: true, mode: 0o700 });
      await forgetAbandoned(directory);
      return { file: await open(temporary, "wx", 0o600), temporary };
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== "ENOENT" || attempt === BEGIN_ATTEMPTS) throw thrown;
    }
  }
}

async function forgetAbandoned(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (!name.startsWith(UNFINISHED)) continue;
    const path = join(directory, name);
    const found = await stat(path).catch(absent);
    if (found !== undefined && Date.now() - found.mtimeMs > ABANDONED_MS) await rm(path, { force: true });
  }
}

/** The new name is lost with the power until its directory is on the disk too. */
async function syncDirectory(directory: string): Promise<void> {
  // Gone with the last object in it, which somebody has removed again meanwhile.
  const handle = await open(directory, "r").catch(absent);
  try {
    await handle?.sync();
  } finally {
    await handle?.close();
  }
}
