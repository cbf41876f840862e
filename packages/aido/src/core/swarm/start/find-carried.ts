import { type GitSurroundings, runGit } from "../run-git.ts";

/**
 * Whether the repository itself has files in `.aimi/swarm`. aido keeps there how workers are run, isolation and variables to pass
 * on included: that is for the user to say, never for whoever wrote the repository.
 */
export async function findCarried(project: string, surroundings: GitSurroundings): Promise<boolean> {
  const options = { code: "VALIDATION_ERROR" } as const;
  const { stdout } = await runGit(["ls-files", "-z", "--", ".aimi/swarm"], project, options, surroundings);
  return stdout.length > 0;
}
