import { closeSync, constants, fstatSync, openSync, readSync, writeSync } from "node:fs";

const LINE = /^(?:c ([0-9a-f]{40}|none)|t) ([0-9a-f]{40}) ([A-Za-z0-9_.-]{1,64}) \.$/;
const SIZE_LINE = /^s (\d{1,15}) \.$/;
const READ_BYTES = 1024 * 1024;

/**
 * Which commits follow each other and which exec stands for which. One file that is only appended to: of several
 * processes that add a commit to the same one, the first in the file has done so, and the others see that they have not.
 */
export class CommitLog {
  readonly #path: string;
  readonly #ties = new Map<string, string>();
  #fd: number | undefined;
  #offset = 0;
  #rest = "";
  #head: string | undefined;
  #bytes = 0;

  constructor(path: string) {
    this.#path = path;
  }

  head(): string | undefined {
    this.#refresh();
    return this.#head;
  }

  tied(execId: string): string | undefined {
    this.#refresh();
    return this.#ties.get(execId);
  }

  tie(execId: string, commit: string): void {
    this.#append(`t ${commit} ${execId}`);
  }

  /** False when `before` is no longer the newest. */
  advance(before: string | undefined, commit: string, execId: string): boolean {
    this.#append(`c ${before ?? "none"} ${commit} ${execId}`);
    return this.tied(execId) === commit;
  }

  /** What was noted of the history's size, by all processes together. */
  bytes(): number {
    this.#refresh();
    return this.#bytes;
  }

  grow(bytes: number): void {
    this.#append(`s ${bytes}`);
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  /** A line that a full disk has cut off does not end in a dot, and the next one begins on a line of its own. */
  #append(line: string): void {
    const bytes = Buffer.from(`\n${line} .\n`, "latin1");
    const written = writeSync(this.#open(constants.O_CREAT), bytes);
    if (written !== bytes.length) throw Object.assign(new Error("The disk is full"), { code: "ENOSPC" });
  }

  #refresh(): void {
    let fd: number;
    try {
      fd = this.#open(0);
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return;
      throw thrown;
    }
    const unread = fstatSync(fd).size - this.#offset;
    if (unread === 0) return;
    // As little as is there: memory beside the heap that comes and goes with every exec keeps the collector at work.
    const buffer = Buffer.allocUnsafe(Math.min(Math.max(unread, 1), READ_BYTES));
    for (let read = -1; read !== 0; ) {
      read = readSync(fd, buffer, 0, buffer.length, this.#offset);
      this.#offset += read;
      const lines = (this.#rest + buffer.toString("latin1", 0, read)).split("\n");
      this.#rest = lines.pop() ?? "";
      for (const line of lines) this.#take(line);
    }
  }

  #take(line: string): void {
    const match = LINE.exec(line);
    if (match === null) {
      this.#bytes += Number(SIZE_LINE.exec(line)?.[1] ?? 0);
      return;
    }
    const [, before, commit = "", execId = ""] = match;
    if (before !== undefined && before !== (this.#head ?? "none")) return;
    if (before !== undefined) this.#head = commit;
    this.#ties.set(execId, commit);
  }

  #open(flags: number): number {
    this.#fd ??= openSync(this.#path, constants.O_RDWR | constants.O_APPEND | flags, 0o600);
    return this.#fd;
  }
}
