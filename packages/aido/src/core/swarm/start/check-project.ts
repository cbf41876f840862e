import { realpath, stat } from "node:fs/promises";
import { AidoError, isAidoError } from "@aido/sdk/protocol";
import { checkedOutBranches } from "../merge/checked-out.ts";
import { Git } from "../merge/git.ts";
import { isRepositoryUrl } from "../messages/payload-rules.ts";
import { firstLine, type GitSurroundings, runGit } from "../run-git.ts";

export interface CheckedProject {
  /** What workers clone; without a password that may be in it. */
  readonly repoUrl: string;
  readonly branch: string;
  /** Origin's own branch, where it is known. */
  readonly defaultBranch: string | undefined;
  /** Branches that work trees have, with their places. */
  readonly checkedOut: ReadonlyMap<string, string>;
  /** What workers will not have. */
  readonly warnings: readonly string[];
}

/** Whether workers can begin: they know the project only by its origin. Nothing is asked over the network. */
export async function checkProject(project: string, surroundings: GitSurroundings): Promise<CheckedProject> {
  const git = async (args: readonly string[], answers: readonly number[] = []) => {
    const options = { code: "VALIDATION_ERROR", answers } as const;
    const { code, stdout } = await runGit(
      ["-c", "core.fsmonitor=false", ...args],
      project,
      options,
      surroundings,
    );
    return { code, text: stdout.toString("utf8").replace(/\n$/, "") };
  };
  await checkTop(project, git);
  const { repoUrl, warnings } = await checkOrigin(git);
  const head = await git(["symbolic-ref", "-q", "HEAD"], [1]);
  if (head.code !== 0) {
    throw new AidoError("VALIDATION_ERROR", `${project} has a detached HEAD: no branch is checked out`, {
      hint: "Switch to the branch that the work is for: `git switch <branch>`.",
    });
  }
  if ((await git(["rev-parse", "--verify", "-q", "HEAD"], [1, 128])).code !== 0) {
    throw new AidoError("VALIDATION_ERROR", `${project} has no commit yet`, {
      hint: "Commit and push first: workers begin from what is at the origin.",
    });
  }
  const branch = head.text.replace(/^refs\/heads\//, "");
  const [change = ""] = (await git([...STATUS, "--", ".", ":(exclude).aimi", ":(exclude).aido"])).text.split(
    "\0",
    1,
  );
  if (change !== "") {
    // Two letters and a space are in front of it.
    const path = change.slice(3);
    warnings.push(
      `There are changes that are not committed, the first in ${path}; workers see only what is pushed to origin`,
    );
  }
  const unpushed = Number((await git(["rev-list", "--count", "HEAD", "--not", "--remotes=origin"])).text);
  if (unpushed > 0) {
    const commits = unpushed === 1 ? "1 commit" : `${unpushed} commits`;
    warnings.push(`${branch} has ${commits} that origin has not; \`git push\` lets workers begin from there`);
  }
  const remoteHead = await git(["symbolic-ref", "-q", "refs/remotes/origin/HEAD"], [1, 128]);
  const defaultBranch =
    remoteHead.code === 0 ? remoteHead.text.replace(/^refs\/remotes\/origin\//, "") : undefined;
  const common = await git(["rev-parse", "--path-format=absolute", "--git-common-dir"]);
  const checkedOut = await checkedOutBranches(new Git(common.text, surroundings));
  return { repoUrl, branch, defaultBranch, checkedOut, warnings };
}

const STATUS = ["status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=all"];

type RunGit = (
  args: readonly string[],
  answers?: readonly number[],
) => Promise<{ code: number; text: string }>;

async function checkTop(project: string, git: RunGit): Promise<void> {
  const stats = await stat(project).catch(() => undefined);
  if (!stats?.isDirectory()) {
    throw new AidoError("VALIDATION_ERROR", `${project} is not a directory`, {
      hint: "Name the project's directory with --dir.",
    });
  }
  let top: string;
  try {
    top = (await git(["rev-parse", "--show-toplevel"])).text;
  } catch (thrown) {
    if (!isAidoError(thrown, "VALIDATION_ERROR")) throw thrown;
    throw new AidoError("VALIDATION_ERROR", `${project} is not in a git repository`, {
      hint: "Run this in the project's repository, or name its directory with --dir.",
      cause: thrown,
    });
  }
  if ((await realpath(project)) === (await realpath(top))) return;
  throw new AidoError("VALIDATION_ERROR", `${project} is not the top of its repository, which is ${top}`, {
    hint: `Workers clone the whole repository: keep .aimi there, and type \`aido swarm --dir ${top}\`.`,
  });
}

async function checkOrigin(git: RunGit): Promise<{ repoUrl: string; warnings: string[] }> {
  const known = await git(["remote", "get-url", "origin"], [2, 128]);
  if (known.code !== 0) {
    throw new AidoError("VALIDATION_ERROR", "The repository has no remote named origin", {
      hint: "Workers clone from it and push to it: `git remote add origin <url>`.",
    });
  }
  const url = firstLine(Buffer.from(known.text));
  const { repoUrl, hadSecret } = withoutSecret(url);
  if (!isRepositoryUrl(repoUrl)) {
    throw new AidoError("VALIDATION_ERROR", `Workers cannot reach origin at ${JSON.stringify(repoUrl)}`, {
      hint: "It has to be an https:// or ssh address: `git remote set-url origin <url>`.",
      details: { field: "origin" },
    });
  }
  const warning =
    "Origin's address has a password in it, which workers do not get; set GITHUB_TOKEN for them";
  return { repoUrl, warnings: hadSecret ? [warning] : [] };
}

function withoutSecret(url: string): { repoUrl: string; hadSecret: boolean } {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) return { repoUrl: url, hadSecret: false };
  const parsed = new URL(url);
  if (parsed.username === "" && parsed.password === "") return { repoUrl: url, hadSecret: false };
  parsed.username = "";
  parsed.password = "";
  return { repoUrl: parsed.href, hadSecret: true };
}
