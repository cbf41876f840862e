import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AidoError, type ErrorCode } from "@aido/sdk/protocol";
import { gitEnvironment } from "./git-environment.ts";
import { ObjectDatabase } from "./object-database.ts";

const HEAD = "refs/heads/main";
const CONFIG =
  "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n\tquotepath = false\n[gc]\n\tauto = 0\n";
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/** A bare repository outside every sandbox. Written by aido itself; git only reads it. */
export class GitRepository {
  readonly directory: string;
  readonly objects: ObjectDatabase;

  constructor(directory: string) {
    this.directory = directory;
    this.objects = new ObjectDatabase(directory);
  }

  get exists(): boolean {
    return existsSync(join(this.directory, "HEAD"));
  }

  /** What `git init --bare` would make, without starting a process; HEAD last, so that half a repository is none. */
  init(): void {
    if (this.exists) return;
    for (const part of ["objects/pack", "objects/info", "refs/heads", "refs/tags", "info"]) {
      mkdirSync(join(this.directory, part), { recursive: true, mode: 0o700 });
    }
    writeFileSync(join(this.directory, "config"), CONFIG, { mode: 0o600 });
    this.#replace("HEAD", `ref: ${HEAD}\n`);
  }

  head(): string | undefined {
    return this.ref(HEAD);
  }

  setHead(commit: string): void {
    this.#replace(HEAD, `${commit}\n`);
  }

  tag(name: string, commit: string): void {
    this.#replace(`refs/tags/${name}`, `${commit}\n`);
  }

  tagged(name: string): string | undefined {
    return this.ref(`refs/tags/${name}`);
  }

  ref(name: string): string | undefined {
    try {
      const text = readFileSync(join(this.directory, name), "utf8").trim();
      return /^[0-9a-f]{40}$/.test(text) ? text : undefined;
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw thrown;
    }
  }

  /** Runs git on this repository alone and gives back what it printed. */
  async git(
    args: readonly string[],
    options: { code: ErrorCode; stdin?: Buffer; signal?: AbortSignal | undefined; maxBytes?: number },
  ): Promise<Buffer> {
    const child = spawn("git", ["-c", "core.attributesFile=/dev/null", ...args], {
      env: gitEnvironment(this.directory),
      cwd: "/",
      stdio: ["pipe", "pipe", "pipe"],
    });
    const stop = () => child.kill("SIGKILL");
    options.signal?.addEventListener("abort", stop, { once: true });
    const limit = options.maxBytes ?? MAX_ANSWER_BYTES;
    const parts: Buffer[] = [];
    let length = 0;
    let problem = "";
    child.stdin.on("error", () => undefined);
    child.stdin.end(options.stdin);
    child.stderr.on("data", (chunk: Buffer) => {
      if (problem.length < 2_000) problem += chunk.toString("utf8");
    });
    child.stdout.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length > limit) stop();
      else parts.push(chunk);
    });
    try {
      const code = await new Promise<number | null>((resolve, reject) => {
        child.on("error", reject);
        child.on("close", resolve);
      });
      options.signal?.throwIfAborted();
      if (length > limit) throw new AidoError(options.code, `The answer is larger than ${limit} bytes`);
      if (code !== 0)
        throw new AidoError(options.code, `git ${args[0]} failed: ${problem.trim() || `exit ${code}`}`);
      return Buffer.concat(parts);
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

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }

  #replace(name: string, text: string): void {
    const path = join(this.directory, name);
    writeFileSync(`${path}.new`, text, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  }
}
