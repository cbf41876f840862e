import type { ToolRun } from "../supervisor/tool-run.ts";

type Open = (offset: number, signal: AbortSignal) => Promise<ToolRun>;

/** A file read in pieces. Clients ask for one after the other, so one run of the tool serves all of them. */
export class SequentialRead {
  readonly #open: Open;
  #ending = new AbortController();
  #chunks: AsyncIterator<Uint8Array> | undefined;
  #run: ToolRun | undefined;
  #rest: Uint8Array = new Uint8Array();
  #position = 0;

  constructor(open: Open) {
    this.#open = open;
  }

  /** Fewer bytes than asked for only at the end of the file; none when the offset is not before it. */
  async read(offset: number, length: number): Promise<Buffer> {
    if (this.#chunks === undefined || offset !== this.#position) await this.#restart(offset);
    const parts: Uint8Array[] = [];
    for (let left = length; left > 0; ) {
      if (this.#rest.length === 0 && !(await this.#more())) break;
      const part = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(part.length);
      parts.push(part);
      left -= part.length;
    }
    const data = Buffer.concat(parts);
    this.#position += data.length;
    // The file may grow: a later question begins anew where this one ended.
    if (data.length < length) this.#chunks = undefined;
    return data;
  }

  close(): void {
    this.#ending.abort(new Error("The file was closed"));
    this.#chunks = undefined;
  }

  async #restart(offset: number): Promise<void> {
    this.close();
    this.#ending = new AbortController();
    this.#run = await this.#open(offset, this.#ending.signal);
    this.#chunks = this.#run.stdout[Symbol.asyncIterator]();
    this.#rest = new Uint8Array();
    this.#position = offset;
  }

  async #more(): Promise<boolean> {
    const next = await this.#chunks?.next();
    if (next !== undefined && next.done !== true) {
      this.#rest = next.value;
      return true;
    }
    await this.#run?.done;
    return false;
  }
}
