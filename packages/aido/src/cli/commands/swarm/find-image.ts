import { projectImage } from "../../../core/swarm/image/image-names.ts";
import { projectSlug } from "../../../core/swarm/image/project-slug.ts";
import type { CliContext } from "../../context.ts";
import { note } from "../../output/print.ts";
import { printable } from "../../output/printable.ts";

export interface WantedImage {
  readonly project: string;
  readonly repoUrl: string;
  /** Made or brought up to date, unless somebody says that it is not to be. */
  readonly build: boolean;
  readonly signal: AbortSignal;
}

/** The image of the project's workers. */
export async function findImage(
  context: CliContext,
  { project, repoUrl, build, signal }: WantedImage,
): Promise<string> {
  if (!build) return projectImage(projectSlug({ origin: repoUrl, directory: project }));
  context.progress.show("making the project's image");
  const made = await context.withSwarmImages((images) =>
    images.ensureProject({ project, signal, onProgress: context.progress.show }),
  );
  context.progress.clear();
  for (const path of made.leftOut) await note(context, `not in the image: ${printable(path)}`);
  return made.image;
}
