import { AidoError } from "@aido/sdk/protocol";
import { firstLine, type GitSurroundings, runGit } from "../run-git.ts";
import { Git } from "./git.ts";

/** The first with `merge-tree --write-tree`, the merge that needs no work tree. */
const OLDEST = [2, 38] as const;

/** The repository that the project belongs to, by a git that can merge. */
export async function openRepository(project: string, surroundings: GitSurroundings): Promise<Git> {
  const version = firstLine(
    (await runGit(["version"], "/", { code: "GIT_MERGE_FAILED" }, surroundings)).stdout,
  );
  checkVersion(version);
  return await findRepository(project, surroundings);
}

export async function findRepository(project: string, surroundings: GitSurroundings): Promise<Git> {
  const args = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
  try {
    const { stdout } = await runGit(args, project, { code: "VALIDATION_ERROR" }, surroundings);
    return new Git(stdout.toString("utf8").replace(/\n$/, ""), surroundings);
  } catch (thrown) {
    if (!(thrown instanceof Error)) throw thrown;
    const { code } = thrown as NodeJS.ErrnoException;
    if (code !== "VALIDATION_ERROR" && code !== "ENOTDIR") throw thrown;
    throw new AidoError("VALIDATION_ERROR", `${project} is not in a git repository: ${thrown.message}`, {
      hint: "Run this in the project's repository, or name its directory with --dir.",
      cause: thrown,
    });
  }
}

export function checkVersion(said: string): void {
  const [, major, minor] = /^git version (\d+)\.(\d+)/.exec(said) ?? [];
  const found = [Number(major), Number(minor)] as const;
  if (found[0] > OLDEST[0] || (found[0] === OLDEST[0] && found[1] >= OLDEST[1])) return;
  throw new AidoError("UNSUPPORTED", `Merging needs git ${OLDEST.join(".")} or later; this is "${said}"`, {
    hint: "Update git, or merge the branches yourself.",
  });
}
