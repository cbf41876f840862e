import type { SandboxRecord } from "../store/store.ts";

/** A way from stopped to running. `fresh` is a new container without any files of the sandbox's. */
export type WayBack = "hot" | "warm" | "cold" | "fresh";

type Kept = Pick<
  SandboxRecord,
  | "tier"
  | "warmImage"
  | "warmIsStale"
  | "snapshotSha256"
  | "snapshotIsStale"
  | "startedAt"
  | "workdir"
  | "mounts"
>;

/**
 * The ways that can give the sandbox its files back, best first. As long as its own container is there, only what
 * holds the same files may take that one's place; once it is gone, the last that was kept is better than nothing.
 * None when it had files of which nothing is left: an empty workspace must not pass for them.
 */
export function waysBack(record: Kept, hasContainer: boolean): readonly WayBack[] {
  const isHot = hasContainer && (record.tier === "hot" || record.tier === undefined);
  const hasImage = record.tier !== "cold" && record.warmImage !== undefined;
  const ways: WayBack[] = isHot ? ["hot"] : [];
  if (hasImage && !(isHot && record.warmIsStale)) ways.push("warm");
  if (record.snapshotSha256 !== undefined && !(isHot && record.snapshotIsStale)) ways.push("cold");
  const losesNothing = record.startedAt === undefined || isWorkMounted(record);
  return ways.length === 0 && losesNothing ? ["fresh"] : ways;
}

/** A run's directories and a named workspace lie outside of every container. */
function isWorkMounted({ workdir, mounts }: Kept): boolean {
  return mounts.some(
    ({ target, readOnly }) => !readOnly && (workdir === target || workdir.startsWith(`${target}/`)),
  );
}
