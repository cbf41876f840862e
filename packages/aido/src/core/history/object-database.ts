import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { inflateSync } from "node:zlib";
import { AidoError } from "@aido/sdk/protocol";
import { deflate } from "./deflate.ts";
import { gitEnvironment } from "./git-environment.ts";
import type { GitObject, ObjectType } from "./git-objects.ts";
import type { HistorySize } from "./history-size.ts";

/** Beyond this many objects one pack is cheaper than single files. */
const PACK_FROM = 256;
const PACK_LIMIT_MS = 120_000;
/** What is written at a stretch before others have their turn. */
const STRETCH_BYTES = 256 * 1024;
/** Of one object in a pack's index. */
const INDEX_BYTES = 32;
const MAX_COMMIT_BYTES = 65_536;
const PACK_TYPE: Readonly<Record<ObjectType, number>> = { commit: 1, tree: 2, blob: 3 };

/** Where objects are kept. A name that exists is never written again: it is the hash of its content. */
export class ObjectDatabase {
  readonly #gitDir: string;
  readonly #size: HistorySize;
  readonly #written = new Set<string>();

  constructor(gitDir: string, size: HistorySize) {
    this.#gitDir = gitDir;
    this.#size = size;
  }

  has(id: string): boolean {
    return this.#written.has(id) || existsSync(this.#path(id));
  }

  /** Raises HISTORY_FULL when there is no room left for contents; an entry that has them all is completed. */
  async write(objects: readonly GitObject[]): Promise<void> {
    const fresh = objects.filter((object) => !this.has(object.id));
    if (fresh.length >= PACK_FROM) await this.#writePack(fresh);
    else await this.#writeAllLoose(fresh);
    for (const object of fresh) this.#written.add(object.id);
  }

  /** The tree of a commit that is a file of its own, without starting git for it. */
  treeOf(commit: string): string | undefined {
    try {
      const bytes = inflateSync(readFileSync(this.#path(commit)), { maxOutputLength: MAX_COMMIT_BYTES });
      return /^commit \d+\0tree ([0-9a-f]{40})\n/.exec(bytes.toString("latin1"))?.[1];
    } catch {
      return undefined;
    }
  }

  #path(id: string): string {
    return join(this.#gitDir, "objects", id.slice(0, 2), id.slice(2));
  }

  async #writeAllLoose(objects: readonly GitObject[]): Promise<void> {
    let bytes = 0;
    for (const object of objects) {
      if (object.type === "blob") this.#size.mustHaveRoom();
      const writing = this.#writeLoose(object);
      if (writing !== undefined) await writing;
      bytes += object.content.length;
      if (bytes < STRETCH_BYTES) continue;
      await nextTurn();
      bytes = 0;
    }
  }

  /** Without a turn of the loop for small ones: they are on the way of every exec. */
  #writeLoose(object: GitObject): Promise<void> | undefined {
    const header = Buffer.from(`${object.type} ${object.content.length}\0`);
    const temporary = join(this.#gitDir, "objects", `new-${randomBytes(6).toString("hex")}`);
    const bytes = deflate(object.content, header);
    if (bytes instanceof Promise) return this.#writeLarge(object, bytes, temporary);
    writeFileSync(temporary, bytes, { mode: 0o400 });
    this.#put(temporary, object, bytes.length);
    return undefined;
  }

  async #writeLarge(object: GitObject, deflating: Promise<Buffer>, temporary: string): Promise<void> {
    const bytes = await deflating;
    await writeFile(temporary, bytes, { mode: 0o400 });
    this.#put(temporary, object, bytes.length);
  }

  #put(temporary: string, object: GitObject, length: number): void {
    this.#size.add(length);
    const path = this.#path(object.id);
    try {
      renameSync(temporary, path);
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== "ENOENT") throw thrown;
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      renameSync(temporary, path);
    }
  }

  /** A pack of whole objects; git makes its index and checks it. */
  async #writePack(objects: readonly GitObject[]): Promise<void> {
    if (objects.some(({ type }) => type === "blob")) this.#size.mustHaveRoom();
    const child = spawn("git", ["index-pack", "--stdin"], {
      env: gitEnvironment(this.#gitDir),
      stdio: ["pipe", "ignore", "pipe"],
      cwd: "/",
      timeout: PACK_LIMIT_MS,
      killSignal: "SIGKILL",
    });
    const ended = once(child, "close") as Promise<[number | null]>;
    // Whether it can be started is asked at the end.
    ended.catch(() => undefined);
    let problem = "";
    child.stderr.on("data", (chunk: Buffer) => {
      if (problem.length < 2_000) problem += chunk.toString("utf8");
    });
    // An early end shows as its exit code; the broken pipe adds nothing.
    child.stdin.on("error", () => undefined);
    const hash = createHash("sha1");
    let length = 0;
    const put = async (part: Buffer): Promise<void> => {
      hash.update(part);
      length += part.length;
      if (!child.stdin.write(part)) await Promise.race([once(child.stdin, "drain"), ended]);
    };
    const head = Buffer.alloc(12);
    head.write("PACK", 0, "latin1");
    head.writeUInt32BE(2, 4);
    head.writeUInt32BE(objects.length, 8);
    await put(head);
    for (const object of objects) {
      await put(packEntryHeader(PACK_TYPE[object.type], object.content.length));
      await put(await deflate(object.content));
    }
    child.stdin.end(hash.digest());
    const [code] = await ended.catch((thrown: unknown) => {
      problem = thrown instanceof Error ? thrown.message : String(thrown);
      return [null];
    });
    if (code !== 0) {
      throw new AidoError("GIT_COMMIT_FAILED", `The history could not be written: ${problem.trim()}`);
    }
    this.#size.add(length + objects.length * INDEX_BYTES);
  }
}

/** Type in three bits, then the length: four bits and seven more per following byte. */
function packEntryHeader(type: number, length: number): Buffer {
  const bytes: number[] = [];
  let rest = Math.floor(length / 16);
  let byte = (type << 4) | (length & 15);
  while (rest > 0) {
    bytes.push(byte | 0x80);
    byte = rest & 0x7f;
    rest = Math.floor(rest / 128);
  }
  bytes.push(byte);
  return Buffer.from(bytes);
}
