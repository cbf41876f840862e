import { rmSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { firstLine, type GitAnswer, type GitOptions, runGit } from "../../core/swarm/run-git.ts";
import { endStrays } from "../agent/end-strays.ts";
import type { Remote } from "./remote.ts";

/** Of the adapter's own repository, which has no others: what trees hold can start nothing. */
const CONFIG = `[core]
	repositoryFormatVersion = 0
	bare = false
	hooksPath = /dev/null
	fsmonitor = false
	attributesFile = /dev/null
	excludesFile = /dev/null
	quotePath = false
	untrackedCache = false
	logAllRefUpdates = false
[submodule]
	recurse = false
[fetch]
	recurseSubmodules = false
[push]
	recurseSubmodules = no
	followTags = false
[credential]
	helper =
[commit]
	gpgSign = false
[gc]
	auto = 0
[maintenance]
	auto = false
[advice]
	addEmbeddedRepo = false
`;

/** In the workspace's own repository the adapter only reads and sets names; its settings start nothing there. */
const IN_WORKSPACE = [
  "-c",
  "core.hooksPath=/dev/null",
  "-c",
  "core.fsmonitor=false",
  "-c",
  "core.logAllRefUpdates=false",
];

/** What git needs of the worker's environment: ways to the network, and who commits. Secrets are not among them. */
const INHERITED =
  /^(PATH|HOME|USER|LOGNAME|TMPDIR|TZ|SSH_AUTH_SOCK|SSL_CERT_(FILE|DIR)|(https?|all|no)_proxy|(HTTPS?|ALL|NO)_PROXY|GIT_SSL_.*|GIT_SSH(_COMMAND|_VARIANT)?|GIT_(AUTHOR|COMMITTER)_(NAME|EMAIL)|GIT_EXEC_PATH)$/;

const FIXED = {
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_ATTR_NOSYSTEM: "1",
  GIT_ALLOW_PROTOCOL: "https:ssh",
  GIT_PROTOCOL_FROM_USER: "0",
  GIT_ASKPASS: "/bin/false",
  SSH_ASKPASS: "/bin/false",
  GIT_EDITOR: "/bin/false",
};

export type Environment = Readonly<Record<string, string | undefined>>;
export type GitCall = Partial<GitOptions> & { readonly signal?: AbortSignal | undefined };

/**
 * git as the adapter uses it: a repository of its own, outside the workspace, that shares the workspace's objects and
 * looks at its files. The settings, hooks, index and attributes' programs of the workspace's repository, which an agent
 * or an image can change, are never in force where there is a token.
 */
export class WorkerGit {
  readonly workspace: string;
  /** The workspace's own repository, as the agent sees it. */
  readonly shared: string;
  readonly directory: string;
  #env: Environment;
  /** Also when there is no time for an orderly end. */
  readonly #atExit = () => rmSync(this.directory, { recursive: true, force: true });

  private constructor(workspace: string, directory: string, env: Environment) {
    this.workspace = workspace;
    this.shared = join(workspace, ".git");
    this.directory = directory;
    this.#env = env;
    process.once("exit", this.#atExit);
  }

  static async open(workspace: string, env: Environment): Promise<WorkerGit> {
    const directory = await mkdtemp(join(env["TMPDIR"] || tmpdir(), "aimi-git-"));
    const git = new WorkerGit(workspace, directory, toGitEnvironment(env));
    for (const name of ["objects", "refs", "info"]) await mkdir(join(directory, name));
    await writeFile(join(directory, "config"), CONFIG);
    await writeFile(join(directory, "HEAD"), "ref: refs/heads/none\n");
    return git;
  }

  /** In the adapter's repository, with the workspace's objects and files. */
  async run(args: readonly string[], call: GitCall = {}): Promise<GitAnswer> {
    return await this.#run(args, call, {
      GIT_DIR: this.directory,
      GIT_WORK_TREE: this.workspace,
      GIT_OBJECT_DIRECTORY: join(this.shared, "objects"),
    });
  }

  /**
   * git where there is a token, in a repository made for this one use when nothing of an agent runs any more. The
   * adapter's other one lies about while agents work, who run as the same user: a proxy in its settings would see all.
   */
  async overNetwork<T>({ secrets }: Remote, use: (git: WorkerGit) => Promise<T>): Promise<T> {
    await endStrays();
    const own = await WorkerGit.open(this.workspace, this.#env);
    try {
      if (secrets.length > 0) own.#env = { ...own.#env, HOME: own.directory };
      const [from, to] = [this.directory, own.directory].map((directory) => join(directory, "shallow"));
      await copyFile(from ?? "", to ?? "").catch(unlessAbsent);
      return await use(own);
    } finally {
      await own.close();
    }
  }

  async line(args: readonly string[], call: GitCall = {}): Promise<string> {
    return firstLine((await this.run(args, call)).stdout);
  }

  /** A commit, tree or ref by its name; undefined when there is none. */
  async find(name: string): Promise<string | undefined> {
    const { code, stdout } = await this.run(["rev-parse", "--quiet", "--verify", name], {
      answers: [1, 128],
    });
    return code === 0 ? firstLine(stdout) : undefined;
  }

  /** In the workspace's repository, without its files: for names only. */
  async inShared(args: readonly string[], call: GitCall = {}): Promise<GitAnswer> {
    return await this.#run([...IN_WORKSPACE, ...args], call, { GIT_DIR: this.shared });
  }

  async findShared(name: string): Promise<string | undefined> {
    const args = ["rev-parse", "--quiet", "--verify", "--end-of-options", `${name}^{commit}`];
    const { code, stdout } = await this.inShared(args, { answers: [1, 128] });
    return code === 0 ? firstLine(stdout) : undefined;
  }

  async isAncestor(older: string, newer: string): Promise<boolean> {
    return (await this.run(["merge-base", "--is-ancestor", older, newer], { answers: [1] })).code === 0;
  }

  async close(): Promise<void> {
    process.off("exit", this.#atExit);
    await rm(this.directory, { recursive: true, force: true });
  }

  async #run(args: readonly string[], { signal, ...call }: GitCall, place: Record<string, string>) {
    const env = { ...FIXED, ...place, ...call.env };
    const options = { code: "EXEC_FAILED", ...call, env } as const;
    return await runGit(args, this.workspace, options, { env: this.#env, signal, isAlone: true });
  }
}

function unlessAbsent(thrown: NodeJS.ErrnoException): void {
  if (thrown.code !== "ENOENT") throw thrown;
}

function toGitEnvironment(env: Environment): Environment {
  const kept = Object.entries(env).filter(([name]) => INHERITED.test(name));
  const ssh = env["GIT_SSH_COMMAND"] ?? env["GIT_SSH"] ?? "";
  // Nobody is there to answer: a host that is not known and a key with a password are errors, not questions.
  const quiet = ssh === "" ? { GIT_SSH_COMMAND: "ssh -o BatchMode=yes -o ConnectTimeout=30" } : {};
  return { ...Object.fromEntries(kept), ...quiet };
}
