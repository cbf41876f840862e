import { AidoError } from "@aido/sdk/protocol";
import type { Git } from "../merge/git.ts";
import { findRepository } from "../merge/open-repository.ts";
import { firstLine, type GitSurroundings, runGit } from "../run-git.ts";
import { projectSlug } from "./project-slug.ts";

export interface Project {
  readonly directory: string;
  readonly slug: string;
  readonly git: Git;
  /** What is checked out. */
  readonly commit: string;
}

/** The repository that a project's image is made from. */
export async function openProject(directory: string, surroundings: GitSurroundings): Promise<Project> {
  const git = await findRepository(directory, surroundings);
  const origin = await git.run(["config", "--get", "remote.origin.url"], {
    code: "VALIDATION_ERROR",
    answers: [1],
  });
  const slug = projectSlug({ origin: firstLine(origin.stdout) || undefined, directory });
  // Asked for in the project itself: each work tree of a repository has its own.
  const head = await runGit(
    ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"],
    directory,
    { code: "VALIDATION_ERROR", answers: [1] },
    surroundings,
  );
  const commit = firstLine(head.stdout);
  if (commit !== "") return { directory, slug, git, commit };
  throw new AidoError(
    "VALIDATION_ERROR",
    `${directory} has no commit yet, and an image takes committed files`,
    {
      hint: "Commit what the workers are to begin with.",
    },
  );
}
