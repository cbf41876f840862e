import { type GitSurroundings, runGit } from "../run-git.ts";
import { STORY_TRAILER } from "../tasks/story-trailer.ts";

export interface ForeignBranch {
  readonly branch: string;
  /** That the default branch has not. */
  readonly commits: number;
}

const MOST_COMMITS = 10_000;

/**
 * Those of the branches that are at origin, as far as this clone knows, with commits none of which a worker made: somebody else's
 * work that a worker would go on with. One that workers have committed to is the same swarm's, begun anew.
 */
export async function findForeign(
  project: string,
  branches: readonly string[],
  { defaultBranch, ...surroundings }: GitSurroundings & { readonly defaultBranch: string | undefined },
): Promise<readonly ForeignBranch[]> {
  const ask = async (args: readonly string[]) => {
    const { code, stdout } = await runGit(
      args,
      project,
      { code: "VALIDATION_ERROR", answers: [1] },
      surroundings,
    );
    return code === 0 ? stdout.toString("utf8") : undefined;
  };
  const base = defaultBranch === undefined ? "HEAD" : `refs/remotes/origin/${defaultBranch}`;
  const found: ForeignBranch[] = [];
  for (const branch of branches) {
    const ref = `refs/remotes/origin/${branch}`;
    if ((await ask(["show-ref", "--verify", "--quiet", ref])) === undefined) continue;
    const format = `--format=commit%n%(trailers:key=${STORY_TRAILER},valueonly,unfold)`;
    const most = `--max-count=${MOST_COMMITS}`;
    const log = (await ask(["log", "--no-show-signature", most, format, `${base}..${ref}`, "--"])) ?? "";
    const lines = log.split("\n").filter((line) => line.trim() !== "");
    if (lines.length > 0 && lines.every((line) => line === "commit"))
      found.push({ branch, commits: lines.length });
  }
  return found;
}
