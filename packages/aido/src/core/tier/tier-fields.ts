import type { Tier } from "@aido/sdk/protocol";

/**
 * Where the files of a sandbox are that does not run. A container of a sandbox in tier `warm`, `cold` or `gone` is a
 * leftover of an interrupted step: its files are in the image or the object too.
 */
export interface TierFields {
  /** Undefined while it runs, before it ever ran, and for what keeps no container. */
  tier: Tier | undefined;
  tierSince: Date | undefined;
  /** The last image that the driver committed; also what a running container was made from. */
  warmImage: string | undefined;
  /** It has run since the image was made: a way back if the container is lost, not what it holds now. */
  warmIsStale: boolean;
  /** The last object that its files were uploaded as. */
  snapshotUrl: string | undefined;
  /** Undefined while an upload is on its way: what lies there is then nothing to come back from. */
  snapshotSha256: string | undefined;
  snapshotIsStale: boolean;
  /** Beneath what its owner wants snapshots to go; never removed by aido. */
  snapshotDestination: string | undefined;
}

export const NO_TIER: TierFields = {
  tier: undefined,
  tierSince: undefined,
  warmImage: undefined,
  warmIsStale: false,
  snapshotUrl: undefined,
  snapshotSha256: undefined,
  snapshotIsStale: false,
  snapshotDestination: undefined,
};

/** What a start changes: it is in no tier, and all that was kept is of before. */
export const STARTED: Pick<TierFields, "tier" | "tierSince" | "warmIsStale" | "snapshotIsStale"> = {
  tier: undefined,
  tierSince: undefined,
  warmIsStale: true,
  snapshotIsStale: true,
};
