import type { SettingDefinition } from "./setting-definition.ts";
import { duration, flag, seconds } from "./value-kinds.ts";

const DAY_MS = 86_400_000;

/** How long a stopped sandbox stays a container, an image, an object. */
export interface GcValues {
  "gc.interval": number;
  "gc.hotRetention": number;
  "gc.warmRetention": number;
  "gc.coldRetention": number;
  "gc.autoCommit": boolean | undefined;
}

export const GC_SETTINGS: { readonly [K in keyof GcValues]: SettingDefinition<GcValues[K]> } = {
  "gc.interval": {
    kind: duration,
    default: 3_600_000,
    description: "How often a server looks for sandboxes that have been stopped for long; 0 never.",
    variables: { SANDBOX_GC_INTERVAL: seconds },
  },
  "gc.hotRetention": {
    kind: duration,
    default: DAY_MS,
    description: "How long a stopped sandbox keeps its container before an image takes its place.",
    variables: { SANDBOX_GC_HOT_RETENTION: seconds },
  },
  "gc.warmRetention": {
    kind: duration,
    default: 2 * DAY_MS,
    description:
      "How long it keeps that image before its files go to the object store, if there is a place for them.",
    variables: { SANDBOX_GC_WARM_RETENTION: seconds },
  },
  "gc.coldRetention": {
    kind: duration,
    default: 7 * DAY_MS,
    description: "How long it stays in the object store before it is removed for good.",
    variables: { SANDBOX_GC_COLD_RETENTION: seconds },
  },
  "gc.autoCommit": {
    kind: flag,
    default: undefined,
    description:
      "Whether the image is made as soon as a sandbox is stopped. When unset it is for sidecar sandboxes.",
    variables: { SANDBOX_SNAPSHOT_AUTO_COMMIT: flag },
  },
};
