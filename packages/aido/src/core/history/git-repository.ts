import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { AidoError, type ErrorCode } from "@aido/sdk/protocol";
import { CommitLog } from "./commit-log.ts";
import { gitEnvironment } from "./git-environment.ts";
import { HistorySize } from "./history-size.ts";
import { ObjectDatabase } from "./object-database.ts";

const HEAD = "refs/heads/main";
const CONFIG =
  "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n\tquotepath = false\n[gc]\n\tauto = 0\n";
const GIT_LIMIT_MS = 120_000;
/** A listing of all that a history can hold. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024;

export interface GitOptions {
  code: ErrorCode;
  stdin?: Buffer;
  signal?: AbortSignal | undefined;
  maxBytes?: number;
}

/** A bare repository outside every sandbox. Written by aido itself; git only reads it. */
export class GitRepository {
  readonly directory: string;
  readonly objects: ObjectDatabase;
  readonly size: HistorySize;
  readonly #log: CommitLog;
  #standInStart: string | undefined;

  constructor(directory: string, maxBytes = Number.POSITIVE_INFINITY) {
    this.directory = directory;
    this.#log = new CommitLog(join(directory, "commits.log"));
    this.size = new HistorySize(this.#log, maxBytes);
    this.objects = new ObjectDatabase(directory, this.size);
  }

  get exists(): boolean {
    return existsSync(join(this.directory, "HEAD"));
  }

  /** What `git init --bare` would make, without starting a process; HEAD last, so that half a repository is none. */
  init(): void {
    if (this.exists) return;
    for (const part of [
      "objects/pack",
      "objects/info",
      "refs/heads",
      "refs/tags",
      "info",
      "execs",
      "successors",
    ]) {
      mkdirSync(join(this.directory, part), { recursive: true, mode: 0o700 });
    }
    writeFileSync(join(this.directory, "config"), CONFIG, { mode: 0o600 });
    this.#replace("stand-in", randomBytes(16).toString("hex"));
    this.#replace("HEAD", `ref: ${HEAD}\n`);
  }

  /**
   * How the content begins that stands for a file too large to keep. No file of a sandbox has the number in it, so none is
   * taken for one.
   */
  get standInStart(): string {
    this.#standInStart ??= `This file was not kept (${readFileSync(join(this.directory, "stand-in"), "latin1")}), it has `;
    return this.#standInStart;
  }

  isStandIn(content: Buffer): boolean {
    return content.length < 200 && content.toString("latin1").startsWith(this.standInStart);
  }

  /** The newest commit. */
  head(): string | undefined {
    return this.#log.head();
  }

  /**
   * Makes `commit` the newest one and what the exec stands for, unless `before` is no longer the newest: of several
   * processes one wins.
   */
  advance(before: string | undefined, commit: string, execId: string): boolean {
    const isOurs = this.#log.advance(before, commit, execId);
    if (isOurs) this.#setBranch(commit);
    return isOurs;
  }

  /** Which commit an exec stands for. */
  tie(execId: string, commit: string): void {
    this.#log.tie(execId, commit);
  }

  tied(execId: string): string | undefined {
    return this.#log.tied(execId);
  }

  /** Lets go of its files. The sandbox may be gone, and its directory with it. */
  close(): void {
    try {
      if (this.exists) this.size.note();
    } catch {
      // On a full disk it is counted too small by less than a mebibyte.
    }
    this.#log.close();
  }

  /** Runs git on this repository alone and gives back what it printed. Raises PAYLOAD_TOO_LARGE when that is too much. */
  async git(args: readonly string[], options: GitOptions): Promise<Buffer> {
    const limit = options.maxBytes ?? MAX_ANSWER_BYTES;
    const parts: Buffer[] = [];
    let length = 0;
    const take = (chunk: Buffer): boolean => {
      length += chunk.length;
      if (length <= limit) parts.push(chunk);
      return length <= limit;
    };
    await this.read(args, options, take);
    if (length <= limit) return Buffer.concat(parts);
    throw new AidoError("PAYLOAD_TOO_LARGE", `The answer is larger than ${limit} bytes`, {
      hint: "Ask for less: entries that are closer to each other, or single files of one.",
    });
  }

  /** As `git`, told piece by piece; it is ended when `take` wants no more. */
  async read(
    args: readonly string[],
    options: Omit<GitOptions, "maxBytes">,
    take: (chunk: Buffer) => boolean,
  ): Promise<void> {
    const child = spawn("git", ["-c", "core.attributesFile=/dev/null", ...args], {
      env: gitEnvironment(this.directory),
      cwd: "/",
      stdio: ["pipe", "pipe", "pipe"],
      timeout: GIT_LIMIT_MS,
      killSignal: "SIGKILL",
    });
    const stop = () => child.kill("SIGKILL");
    options.signal?.addEventListener("abort", stop, { once: true });
    let isEnough = false;
    let problem = "";
    child.stdin.on("error", () => undefined);
    child.stdin.end(options.stdin);
    child.stderr.on("data", (chunk: Buffer) => {
      if (problem.length < 2_000) problem += chunk.toString("utf8");
    });
    child.stdout.on("data", (chunk: Buffer) => {
      if (isEnough || take(chunk)) return;
      isEnough = true;
      stop();
    });
    try {
      const code = await new Promise<number | null>((resolve, reject) => {
        child.on("error", reject);
        child.on("close", resolve);
      });
      options.signal?.throwIfAborted();
      if (code !== 0 && !isEnough)
        throw new AidoError(options.code, `git ${args[0]} failed: ${problem.trim() || `exit ${code}`}`);
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code === "ENOENT") {
        throw new AidoError(options.code, "git is not installed on this machine", {
          hint: "Install it, for instance with `apt-get install git`.",
        });
      }
      throw thrown;
    } finally {
      options.signal?.removeEventListener("abort", stop);
    }
  }

  /** The branch is for git and its users; what counts is the log. Written in place, because a new file costs much more. */
  #setBranch(commit: string): void {
    for (let next: string | undefined = commit; next !== undefined; ) {
      this.#writeBranch(`${next}\n`);
      // Whoever added one meanwhile may have written before us.
      const head = this.head();
      next = head === next ? undefined : head;
    }
  }

  #writeBranch(line: string): void {
    let fd: number;
    try {
      fd = openSync(join(this.directory, HEAD), "r+");
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== "ENOENT") throw thrown;
      this.#replace(HEAD, line);
      return;
    }
    try {
      writeSync(fd, line, 0, "latin1");
    } finally {
      closeSync(fd);
    }
  }

  #replace(name: string, text: string): void {
    const temporary = join(this.directory, `new-${randomBytes(6).toString("hex")}`);
    writeFileSync(temporary, text, { mode: 0o600 });
    renameSync(temporary, join(this.directory, name));
  }
}
