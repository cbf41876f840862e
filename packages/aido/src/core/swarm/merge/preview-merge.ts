import type { WorkerBranch } from "./choose-branches.ts";
import { fetchedRef } from "./fetch-branches.ts";
import type { Git } from "./git.ts";
import { dropFetched, findCommit } from "./integration.ts";
import { fetchAll, type OnStep } from "./merge-branches.ts";
import type { MergePlan } from "./merge-plan.ts";
import { type ConflictingFile, findConflicts } from "./merge-trees.ts";

/** Two that do not go together, by their branches. */
export interface ConflictingPair {
  one: string;
  other: string;
  files: readonly ConflictingFile[];
}

export interface MergePreview {
  into: string;
  branches: readonly WorkerBranch[];
  pairs: readonly ConflictingPair[];
}

const AT_ONCE = 4;

/** Every pair of branches, and each with the integration branch (or where it would begin), tried out. No branch is made or moved. */
export async function previewMerge(
  git: Git,
  plan: MergePlan & { base: string | undefined },
  onStep: OnStep,
): Promise<MergePreview> {
  const { into, branches } = plan;
  // A place of its own: what a stopped merge goes on with stays as it is.
  const place = `${into}+preview`;
  const base = await fetchAll(git, { ...plan, into: place }, onStep);
  const start = (await findCommit(git, `refs/heads/${into}`)) ?? (base && (await findCommit(git, base)));
  const sides = branches.map(({ branch }) => ({ name: branch, commit: fetchedRef(place, branch) }));
  if (start !== undefined) sides.unshift({ name: into, commit: start });
  const pairs = sides.flatMap((one, index) => sides.slice(index + 1).map((other) => ({ one, other })));
  const found: ConflictingPair[] = [];
  for (let at = 0; at < pairs.length; at += AT_ONCE) {
    onStep(`trying pair ${at + 1} of ${pairs.length}`);
    const some = pairs.slice(at, at + AT_ONCE);
    const tried = await Promise.all(
      some.map(async ({ one, other }) => ({
        one: one.name,
        other: other.name,
        files: await findConflicts(git, one.commit, other.commit),
      })),
    );
    found.push(...tried.filter(({ files }) => files.length > 0));
  }
  await dropFetched(git, place);
  return { into, branches, pairs: found };
}
