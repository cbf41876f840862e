import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Git } from "../merge/git.ts";

type Files = Readonly<Record<string, string | null>>;

/** A bare origin, a clone of it as a user has one, and a place where workers commit and push from. */
export class GitBed implements Disposable {
  readonly directory = mkdtempSync(join(tmpdir(), "aido-merge-"));
  readonly origin = join(this.directory, "origin.git");
  readonly project = join(this.directory, "shop");
  readonly #workers = join(this.directory, "workers");
  readonly env: Record<string, string> = {
    PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: this.directory,
    GIT_CONFIG_NOSYSTEM: "1",
  };

  constructor(files: Files = { "app.txt": "one\ntwo\nthree\n", "README.md": "shop\n" }) {
    writeFileSync(
      join(this.directory, ".gitconfig"),
      '[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n[protocol "file"]\n\tallow = always\n',
    );
    this.git(this.directory, "init", "--quiet", "--bare", this.origin);
    this.git(this.directory, "clone", "--quiet", this.origin, this.#workers);
    this.#commit(files, "begin");
    this.git(this.#workers, "push", "--quiet", "origin", "HEAD:main");
    this.git(this.directory, "clone", "--quiet", this.origin, this.project);
  }

  /** What a worker does: changes on a branch from main, pushed. A file that is null is removed. */
  push(branch: string, files: Files): string {
    this.git(this.#workers, "checkout", "--quiet", "-B", branch, "origin/main");
    return this.#pushed(branch, files);
  }

  /** Further changes on it. */
  pushMore(branch: string, files: Files): string {
    this.git(this.#workers, "checkout", "--quiet", branch);
    return this.#pushed(branch, files);
  }

  /** Anything else in the place of the workers. */
  inWorkers(...args: string[]): string {
    return this.git(this.#workers, ...args);
  }

  /** git in the user's clone. */
  user(...args: string[]): string {
    return this.git(this.project, ...args);
  }

  git(cwd: string, ...args: string[]): string {
    return execFileSync("git", args, { cwd, env: this.env, stdio: ["ignore", "pipe", "pipe"] }).toString();
  }

  get repository(): Git {
    return new Git(join(this.project, ".git"), { env: this.env });
  }

  /** All that a merge must leave alone. */
  userState() {
    const refs = this.user("for-each-ref", "--format=%(refname) %(objectname)").split("\n");
    return {
      refs: refs.filter((line) => !line.includes("integration") && !line.startsWith("refs/aido/")),
      head: this.user("symbolic-ref", "HEAD"),
      status: this.user("status", "--porcelain=v2", "--branch"),
      config: this.user("config", "--list", "--local"),
      index: this.user("ls-files", "--stage"),
    };
  }

  [Symbol.dispose](): void {
    rmSync(this.directory, { recursive: true, force: true });
  }

  #pushed(branch: string, files: Files): string {
    this.#commit(files, `work on ${branch}`);
    this.git(this.#workers, "push", "--quiet", "--force", "origin", branch);
    return this.git(this.#workers, "rev-parse", "HEAD").trim();
  }

  #commit(files: Files, message: string): void {
    for (const [name, content] of Object.entries(files)) {
      const path = join(this.#workers, name);
      mkdirSync(dirname(path), { recursive: true });
      if (content === null) rmSync(path);
      else writeFileSync(path, content);
    }
    this.git(this.#workers, "add", "--all");
    this.git(this.#workers, "commit", "--quiet", "--allow-empty", "-m", message);
  }
}
