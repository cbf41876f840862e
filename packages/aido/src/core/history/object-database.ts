import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { deflateSync, inflateSync } from "node:zlib";
import { AidoError } from "@aido/sdk/protocol";
import { gitEnvironment } from "./git-environment.ts";
import type { GitObject, ObjectType } from "./git-objects.ts";

/** Beyond this many objects one pack is cheaper than single files. */
const PACK_FROM = 256;
const PACK_LIMIT_MS = 120_000;
const MAX_COMMIT_BYTES = 65_536;
const PACK_TYPE: Readonly<Record<ObjectType, number>> = { commit: 1, tree: 2, blob: 3 };

/** Where objects are kept. A name that exists is never written again: it is the hash of its content. */
export class ObjectDatabase {
  readonly #gitDir: string;
  readonly #written = new Set<string>();

  constructor(gitDir: string) {
    this.#gitDir = gitDir;
  }

  has(id: string): boolean {
    return this.#written.has(id) || existsSync(this.#path(id));
  }

  async write(objects: readonly GitObject[]): Promise<void> {
    const fresh = objects.filter((object) => !this.has(object.id));
    if (fresh.length >= PACK_FROM) await this.#writePack(fresh);
    else for (const object of fresh) this.#writeLoose(object);
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

  #writeLoose(object: GitObject): void {
    const path = this.#path(object.id);
    const header = Buffer.from(`${object.type} ${object.content.length}\0`);
    const temporary = join(this.#gitDir, "objects", `new-${randomBytes(6).toString("hex")}`);
    const bytes = deflateSync(Buffer.concat([header, object.content]), { level: 1 });
    writeFileSync(temporary, bytes, { mode: 0o400 });
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
    const put = async (part: Buffer): Promise<void> => {
      hash.update(part);
      if (!child.stdin.write(part)) await Promise.race([once(child.stdin, "drain"), ended]);
    };
    const head = Buffer.alloc(12);
    head.write("PACK", 0, "latin1");
    head.writeUInt32BE(2, 4);
    head.writeUInt32BE(objects.length, 8);
    await put(head);
    for (const object of objects) {
      await put(packEntryHeader(PACK_TYPE[object.type], object.content.length));
      await put(deflateSync(object.content, { level: 1 }));
    }
    child.stdin.end(hash.digest());
    const [code] = await ended.catch((thrown: unknown) => {
      problem = thrown instanceof Error ? thrown.message : String(thrown);
      return [null];
    });
    if (code !== 0) {
      throw new AidoError("GIT_COMMIT_FAILED", `The history could not be written: ${problem.trim()}`);
    }
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
