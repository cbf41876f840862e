import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import type { Git } from "./git.ts";

const BRANCH = "branch refs/heads/";

/** Refuses when a work tree has the branch: moving it would change what that work tree seems to hold. */
export async function refuseCheckedOut(git: Git, branch: string): Promise<void> {
  const place = (await checkedOutBranches(git)).get(branch) ?? (await rebasing(git, branch));
  if (place === undefined) return;
  throw new AidoError("BRANCH_IN_USE", `${branch} is checked out in ${place}`, {
    hint: `Finish there and free it (\`git switch -\`, or \`git worktree remove\`), or choose another branch with --into.`,
    details: { branch, place },
  });
}

/** Which branch is checked out where. */
export async function checkedOutBranches(git: Git): Promise<ReadonlyMap<string, string>> {
  const { stdout } = await git.run(["worktree", "list", "--porcelain", "-z"], { code: "GIT_MERGE_FAILED" });
  const found = new Map<string, string>();
  for (const entry of stdout.toString("utf8").split("\0\0")) {
    const lines = entry.split("\0");
    const branch = lines.find((line) => line.startsWith(BRANCH))?.slice(BRANCH.length);
    const place = lines.find((line) => line.startsWith("worktree "))?.slice("worktree ".length);
    if (branch !== undefined) found.set(branch, place ?? "a work tree");
  }
  return found;
}

/** While it rebases, a work tree has no branch; git remembers which one it will move in the end. */
async function rebasing(git: Git, branch: string): Promise<string | undefined> {
  const linked = join(git.directory, "worktrees");
  const names = await readdir(linked).catch(() => []);
  for (const directory of [git.directory, ...names.map((name) => join(linked, name))]) {
    for (const kind of ["rebase-merge", "rebase-apply"]) {
      const head = await readFile(join(directory, kind, "head-name"), "utf8").catch(() => "");
      if (head.trim() === `refs/heads/${branch}`) return `a work tree that is being rebased (${directory})`;
    }
  }
  return undefined;
}
