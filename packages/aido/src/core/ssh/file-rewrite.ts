import { StdinFeed } from "../ports/stdin-feed.ts";
import type { Attributes, DiskDeps } from "./disk-deps.ts";

const ZEROS = new Uint8Array(65_536);

export interface RewrittenFile {
  path: string;
  /** Of what is kept of the file's present content. */
  size: number;
  /** It must be written even if nothing more is asked for. */
  isChanged: boolean;
  append: boolean;
  mode: number;
  setAttributes(attributes: Attributes): Promise<void>;
}

interface Pass {
  feed: StdinFeed;
  done: Promise<void>;
  /** Bytes of the new file so far. */
  position: number;
}

/**
 * A file that is written in pieces at offsets. The supervisor's tool writes a new file and puts it in place when it is
 * complete, so a pass goes from the first byte to the last: pieces that are given take the place of what was there,
 * the rest is copied. A piece before the present position ends the pass and begins another. A connection that
 * breaks leaves the file as it was.
 */
export class FileRewrite {
  readonly #deps: DiskDeps;
  readonly #file: RewrittenFile;
  readonly #ending = new AbortController();
  #pass: Pass | undefined;
  #size: number;
  #isChanged: boolean;
  #failure: unknown;
  #later: Attributes = {};

  constructor(deps: DiskDeps, file: RewrittenFile) {
    this.#deps = deps;
    this.#file = file;
    this.#size = file.size;
    this.#isChanged = file.isChanged;
  }

  async write(offset: number, data: Uint8Array): Promise<void> {
    const at = this.#file.append ? Math.max(this.#size, this.#pass?.position ?? 0) : offset;
    if (this.#pass !== undefined && at < this.#pass.position) await this.flush();
    const pass = this.#pass ?? (await this.#begin());
    await this.#copyUpTo(pass, at);
    await this.#give(pass, data);
  }

  async truncate(size: number): Promise<void> {
    if (this.#pass !== undefined && size < this.#pass.position) await this.flush();
    const pass = this.#pass ?? (await this.#begin());
    await this.#copyUpTo(pass, size);
    this.#size = size;
  }

  /** Set when the content is complete: writing it would change them again. */
  setLater(attributes: Attributes): void {
    this.#later = { ...this.#later, ...attributes };
  }

  /** Puts in place what was written; the file can be written on. */
  async flush(): Promise<void> {
    if (this.#pass === undefined && !this.#isChanged) return;
    const pass = this.#pass ?? (await this.#begin());
    await this.#copyUpTo(pass, Math.max(this.#size, pass.position));
    pass.feed.end();
    await pass.done;
    this.#pass = undefined;
    this.#size = pass.position;
    this.#isChanged = false;
    await this.#deps.tell("files.write", { path: this.#file.path, bytes: pass.position });
  }

  async close(): Promise<void> {
    await this.flush();
    const { mode, modifiedAt } = this.#later;
    if (mode !== undefined || modifiedAt !== undefined) await this.#file.setAttributes(this.#later);
  }

  /** Nothing of what was not put in place is. */
  abort(): void {
    this.#ending.abort(new Error("The file was not closed"));
  }

  async #begin(): Promise<Pass> {
    const feed = new StdinFeed();
    const run = await this.#deps.run(["write", "/", this.#file.path, this.#file.mode.toString(8)], {
      stdin: feed,
      signal: this.#ending.signal,
      isChange: true,
    });
    run.done.catch((error: unknown) => {
      this.#failure = error;
    });
    this.#pass = { feed, done: run.done, position: 0 };
    return this.#pass;
  }

  async #copyUpTo(pass: Pass, end: number): Promise<void> {
    const kept = Math.min(end, this.#size) - pass.position;
    if (kept > 0) {
      const argv = ["read", "/", this.#file.path, String(pass.position), String(kept)];
      const run = await this.#deps.run(argv, { signal: this.#ending.signal });
      for await (const chunk of run.stdout) await this.#give(pass, chunk);
      await run.done;
    }
    while (pass.position < end) {
      await this.#give(pass, ZEROS.subarray(0, Math.min(ZEROS.length, end - pass.position)));
    }
  }

  async #give(pass: Pass, data: Uint8Array): Promise<void> {
    if (data.length === 0) return;
    await pass.feed.give(data);
    if (this.#failure !== undefined) throw this.#failure;
    pass.position += data.length;
  }
}
