import { type GitSurroundings, runGit } from "../run-git.ts";

/**
 * Those of the task files that the repository has in another version than the project's directory. A worker works on its branch,
 * which has the committed one; a file that git does not know yet comes with the project's image. Nothing is written, not even the
 * index that a comparison by `git diff` would refresh.
 */
export async function findChanged(
  project: string,
  paths: readonly string[],
  surroundings: GitSurroundings,
): Promise<readonly string[]> {
  const ask = async (...args: string[]) => {
    const { stdout } = await runGit(args, project, { code: "VALIDATION_ERROR" }, surroundings);
    return stdout.toString("utf8");
  };
  if (paths.length === 0) return [];
  const listed = (await ask("--literal-pathspecs", "ls-tree", "-z", "HEAD", "--", ...paths)).split("\0");
  const committed = new Map(listed.map((line) => line.split("\t", 2)).map(([about, path]) => [path, about]));
  const known = paths.filter((path) => committed.has(path));
  if (known.length === 0) return [];
  const ids = (await ask("hash-object", "--", ...known)).split("\n");
  return known.filter((path, index) => committed.get(path)?.split(" ")[2] !== ids[index]);
}
