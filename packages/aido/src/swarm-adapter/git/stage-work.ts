import { lstat, rm } from "node:fs/promises";
import { join } from "node:path";
import { isAidoError } from "@aido/sdk/protocol";
import type { WorkerGit } from "./worker-git.ts";

const ADD_MS = 10 * 60_000;
const SHOWN = 5;
const FROM_STDIN = ["--pathspec-from-file=-", "--pathspec-file-nul"];

export interface Staging {
  /** Files that are gone stay in the index. */
  readonly keepRemoved?: boolean | undefined;
  readonly log: (line: string) => void;
}

/**
 * Takes all that is in the workspace and not ignored into the index. Gives what git could not take, and why; undefined
 * when nothing is missing. Repositories within the tree that cannot be added are not missed.
 */
export async function stageWork(git: WorkerGit, { keepRemoved, log }: Staging): Promise<string | undefined> {
  // A git that was ended in its work leaves it, and then refuses to work.
  await rm(join(git.directory, "index.lock"), { force: true, recursive: true });
  const inner = await innerRepositories(git);
  const args = ["add", keepRemoved === true ? "--no-all" : "--all", "--ignore-errors", ...FROM_STDIN];
  const paths = [".", ...inner.map((path) => `:(exclude,literal)${path}`)];
  try {
    if (inner.length > 0) {
      await git.run(["update-index", "-z", "--stdin"], { stdin: nulEnded(inner), answers: [128] });
    }
    await git.run(args, { stdin: nulEnded(paths), limitMs: ADD_MS });
    return undefined;
  } catch (thrown) {
    if (!isAidoError(thrown, "EXEC_FAILED")) throw thrown;
    log(thrown.message);
    const lost = await missing(git, keepRemoved === true);
    if (lost.length === 0) return undefined;
    const more = lost.length > SHOWN ? ` and ${lost.length - SHOWN} more` : "";
    return `Not committed: ${lost.slice(0, SHOWN).join(", ")}${more} (${thrown.message})`;
  }
}

/**
 * Repositories within the tree that the index knows. To see whether one has changed `git add` starts a git in it, and
 * that starts what its settings name; which commit it is at can be taken without.
 */
async function innerRepositories(git: WorkerGit): Promise<readonly string[]> {
  const { stdout } = await git.run(["ls-files", "-z", "--stage"]);
  const known = stdout.toString("utf8").split("\0");
  const paths = known
    .filter((entry) => entry.startsWith("160000 "))
    .map((entry) => entry.slice(entry.indexOf("\t") + 1));
  const isThere = await Promise.all(
    paths.map((path) =>
      lstat(join(git.workspace, path, ".git")).then(
        () => true,
        () => false,
      ),
    ),
  );
  return paths.filter((_, index) => isThere[index]);
}

const nulEnded = (paths: readonly string[]) => paths.map((path) => `${path}\0`).join("");

/** What is in the workspace otherwise than in the index; names with a slash at their end are repositories. */
async function missing(git: WorkerGit, keepRemoved: boolean): Promise<readonly string[]> {
  const changed = ["diff-files", "-z", "--name-only", "--no-ext-diff", "--ignore-submodules=all"];
  const asked = [
    ["ls-files", "-z", "--others", "--exclude-standard"],
    keepRemoved ? [...changed, "--diff-filter=d"] : changed,
  ];
  const answers = await Promise.all(asked.map((args) => git.run(args)));
  return answers
    .flatMap(({ stdout }) => stdout.toString("utf8").split("\0"))
    .filter((path) => path !== "" && !path.endsWith("/"));
}
