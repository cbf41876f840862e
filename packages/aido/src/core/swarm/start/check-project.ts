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
  const git = async (args: readonly string[], answers: readonly number[] = []): Promise<Answer> => {
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
  // All at once: each is a process that mostly waits. Their answers are looked at in order, so that what is told does not depend on who was first.
  const asked = {
    origin: git(["remote", "get-url", "origin"], [2, 128]),
    head: git(["symbolic-ref", "-q", "HEAD"], [1]),
    commit: git(["rev-parse", "--verify", "-q", "HEAD"], [1, 128]),
    changes: git([...STATUS, "--", ".", ":(exclude).aimi", ":(exclude).aido"]),
    unpushed: git(["rev-list", "--count", "HEAD", "--not", "--remotes=origin"]),
    remoteHead: git(["symbolic-ref", "-q", "refs/remotes/origin/HEAD"], [1, 128]),
    checkedOut: git(["rev-parse", "--path-format=absolute", "--git-common-dir"]).then((common) =>
      checkedOutBranches(new Git(common.text, surroundings)),
    ),
  };
  // A refusal ends this while others still run; they are let end by themselves.
  for (const answer of Object.values(asked)) answer.catch(() => undefined);
  const { repoUrl, warnings } = checkOrigin(await asked.origin);
  const head = await asked.head;
  if (head.code !== 0) {
    throw new AidoError("VALIDATION_ERROR", `${project} has a detached HEAD: no branch is checked out`, {
      hint: "Switch to the branch that the work is for: `git switch <branch>`.",
    });
  }
  if ((await asked.commit).code !== 0) {
    throw new AidoError("VALIDATION_ERROR", `${project} has no commit yet`, {
      hint: "Commit and push first: workers begin from what is at the origin.",
    });
  }
  const branch = head.text.replace(/^refs\/heads\//, "");
  const [change = ""] = (await asked.changes).text.split("\0", 1);
  if (change !== "") {
    // Two letters and a space are in front of it.
    const path = change.slice(3);
    warnings.push(
      `There are changes that are not committed, the first in ${path}; workers see only what is pushed to origin`,
    );
  }
  const unpushed = Number((await asked.unpushed).text);
  if (unpushed > 0) {
    const commits = unpushed === 1 ? "1 commit" : `${unpushed} commits`;
    warnings.push(`${branch} has ${commits} that origin has not; \`git push\` lets workers begin from there`);
  }
  const remoteHead = await asked.remoteHead;
  const defaultBranch =
    remoteHead.code === 0 ? remoteHead.text.replace(/^refs\/remotes\/origin\//, "") : undefined;
  return { repoUrl, branch, defaultBranch, checkedOut: await asked.checkedOut, warnings };
}

const STATUS = ["status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=all"];

interface Answer {
  readonly code: number;
  readonly text: string;
}

type RunGit = (args: readonly string[], answers?: readonly number[]) => Promise<Answer>;

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

function checkOrigin(known: Answer): { repoUrl: string; warnings: string[] } {
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
