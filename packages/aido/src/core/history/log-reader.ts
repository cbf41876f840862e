import type { HistoryEntry } from "@aido/sdk";
import { originalPath, shownName } from "./git-names.ts";
import { unreadable } from "./parse-git.ts";

/** For `git log -z --name-status`: names may hold anything but NUL, so fields are told apart by their place alone. */
export const LOG_FORMAT = "%H%x00%ct%x00%B%x00";

interface Draft extends HistoryEntry {
  files: string[];
}

/** Entries from a log as it comes, so that it need not be held: names beyond `maxBytes` are left out, and that is said. */
export class LogReader {
  readonly entries: readonly HistoryEntry[];
  readonly #entries: Draft[] = [];
  /** What is yet to be told of an entry or of a changed file. */
  readonly #fields: string[] = [];
  #rest: Buffer[] = [];
  #left: number;

  constructor(maxBytes: number) {
    this.#left = maxBytes;
    this.entries = this.#entries;
  }

  push(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(0); at >= 0; at = chunk.indexOf(0, from)) {
      this.#rest.push(chunk.subarray(from, at));
      this.#take(Buffer.concat(this.#rest).toString("latin1"));
      this.#rest = [];
      from = at + 1;
    }
    if (from < chunk.length) this.#rest.push(chunk.subarray(from));
  }

  #take(token: string): void {
    const [first] = this.#fields;
    if (first === undefined && token === "") return;
    this.#fields.push(token);
    if (isStatus(first)) this.#file(token);
    else if (this.#fields.length === 3) this.#entry();
    else return;
    this.#fields.length = 0;
  }

  #file(name: string): void {
    const entry = this.#entries.at(-1);
    if (entry === undefined) throw unreadable();
    this.#left -= name.length;
    if (this.#left >= 0) entry.files.push(shownName(originalPath(name)));
    else entry.truncated = true;
  }

  #entry(): void {
    const [commitId = "", seconds = "", body = ""] = this.#fields;
    if (!/^[0-9a-f]{40}$/.test(commitId)) throw unreadable();
    const at = /^Timestamp: (\S+)$/m.exec(body)?.[1];
    this.#entries.push({
      commitId,
      execId: /^Execution ID: (\S+)$/m.exec(body)?.[1] ?? "unknown",
      at: at === undefined ? new Date(Number(seconds) * 1000) : new Date(at),
      message: Buffer.from(body.split("\n")[0] ?? "", "latin1").toString("utf8"),
      files: [],
    });
  }
}

/** One letter, behind a newline at the first file of an entry. */
function isStatus(token: string | undefined): boolean {
  return token !== undefined && /^\n?[A-Z]$/.test(token);
}
