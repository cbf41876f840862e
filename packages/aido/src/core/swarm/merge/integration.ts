import { AidoError } from "@aido/sdk/protocol";
import { refuseCheckedOut } from "./checked-out.ts";
import { fetchedPrefix } from "./fetch-branches.ts";
import type { Git } from "./git.ts";

const FAILED = { code: "GIT_MERGE_FAILED" } as const;

/** The branch that is merged into. It moves by whole commits only, and only from where it was seen. */
export class Integration {
  readonly branch: string;
  readonly #git: Git;
  #tip: string;

  private constructor(git: Git, branch: string, tip: string) {
    this.#git = git;
    this.branch = branch;
    this.#tip = tip;
  }

  /** As it is, or begun at `base`. */
  static async open(git: Git, branch: string, base: string | undefined): Promise<Integration> {
    const tip = await findCommit(git, `refs/heads/${branch}`);
    if (tip !== undefined) return new Integration(git, branch, tip);
    const start = base === undefined ? undefined : await findCommit(git, base);
    if (start === undefined) throw noStart(branch);
    await move(git, branch, { to: start, from: "0".repeat(start.length), why: "begun" });
    return new Integration(git, branch, start);
  }

  get tip(): string {
    return this.#tip;
  }

  async has(commit: string): Promise<boolean> {
    const args = ["merge-base", "--is-ancestor", commit, this.#tip];
    return (await this.#git.run(args, { ...FAILED, answers: [1] })).code === 0;
  }

  /** Adds a merge commit with this tree. */
  async add(tree: string, merged: { commit: string; branch: string; message: string }): Promise<string> {
    const args = ["commit-tree", tree, "-p", this.#tip, "-p", merged.commit];
    const commit = await this.#git.line(args, { ...FAILED, stdin: merged.message });
    await move(this.#git, this.branch, { to: commit, from: this.#tip, why: `merged ${merged.branch}` });
    this.#tip = commit;
    return commit;
  }
}

export async function findCommit(git: Git, name: string): Promise<string | undefined> {
  const args = ["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`];
  const { code, stdout } = await git.run(args, { ...FAILED, answers: [1, 128] });
  return code === 0 ? stdout.toString("latin1").trim() : undefined;
}

/** Takes away the refs that fetched branches were kept by. */
export async function dropFetched(git: Git, into: string): Promise<void> {
  const { stdout } = await git.run(
    ["for-each-ref", "--format=delete %(refname)", fetchedPrefix(into)],
    FAILED,
  );
  const stdin = stdout.toString("utf8");
  if (stdin !== "") await git.run(["update-ref", "--stdin"], { ...FAILED, stdin });
}

/** Without it git would make up an identity, or fail only when everything else is done. */
export async function checkIdentity(git: Git): Promise<void> {
  const { code } = await git.run(["var", "GIT_COMMITTER_IDENT"], { ...FAILED, answers: [128] });
  if (code === 0) return;
  throw new AidoError("VALIDATION_ERROR", "git does not know whose commits these will be", {
    hint: 'Set `git config user.name "Your Name"` and `git config user.email you@example.com`.',
  });
}

async function move(
  git: Git,
  branch: string,
  step: { to: string; from: string; why: string },
): Promise<void> {
  await refuseCheckedOut(git, branch);
  const message = `aido swarm merge: ${step.why}`;
  const args = ["update-ref", "--create-reflog", "-m", message, `refs/heads/${branch}`, step.to, step.from];
  try {
    await git.run(args, { code: "BRANCH_IN_USE" });
  } catch (thrown) {
    if (!(thrown instanceof Error) || (thrown as NodeJS.ErrnoException).code !== "BRANCH_IN_USE")
      throw thrown;
    throw new AidoError("BRANCH_IN_USE", `${branch} cannot be moved: ${thrown.message}`, {
      hint: "Another process may have moved it. Run this again: it goes on from where the branch is.",
      details: { branch },
      cause: thrown,
    });
  }
}

function noStart(branch: string): AidoError {
  return new AidoError("BRANCH_NOT_FOUND", `${branch} does not exist and there is nothing to begin it from`, {
    hint: "Name a branch of origin with --base.",
  });
}
