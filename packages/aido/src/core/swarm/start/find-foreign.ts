import { type GitSurroundings, runGit } from "../run-git.ts";
import { STORY_TRAILER } from "../tasks/story-trailer.ts";

export interface ForeignBranch {
  readonly branch: string;
  /** That the default branch has not. */
  readonly commits: number;
}

const ORIGIN = "refs/remotes/origin/";
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
  const ask = async (...args: string[]) => {
    const { stdout } = await runGit(args, project, { code: "VALIDATION_ERROR" }, surroundings);
    return stdout.toString("utf8").split("\n");
  };
  const refs = branches.map((branch) => `${ORIGIN}${branch}`);
  if (refs.length === 0) return [];
  // Asked for all at once; it also finds those that begin with one of them.
  const known = new Set(await ask("for-each-ref", "--format=%(refname)", "--", ...refs));
  const base = defaultBranch === undefined ? "HEAD" : `${ORIGIN}${defaultBranch}`;
  const found: ForeignBranch[] = [];
  for (const branch of branches) {
    const ref = `${ORIGIN}${branch}`;
    if (!known.has(ref)) continue;
    const format = `--format=commit%n%(trailers:key=${STORY_TRAILER},valueonly,unfold)`;
    const most = `--max-count=${MOST_COMMITS}`;
    const log = await ask("log", "--no-show-signature", most, format, `${base}..${ref}`, "--");
    const lines = log.filter((line) => line.trim() !== "");
    if (lines.length > 0 && lines.every((line) => line === "commit"))
      found.push({ branch, commits: lines.length });
  }
  return found;
}
