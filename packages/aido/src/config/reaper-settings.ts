import type { SettingDefinition } from "./setting-definition.ts";
import { duration, flag, milliseconds, numberFrom, seconds } from "./value-kinds.ts";

/** When sandboxes count as unused. */
export interface ReaperValues {
  "reaper.interval": number;
  "reaper.busyCpus": number;
  "reaper.snapshot": boolean;
}

export const REAPER_SETTINGS: { readonly [K in keyof ReaperValues]: SettingDefinition<ReaperValues[K]> } = {
  "reaper.interval": {
    kind: duration,
    default: 30_000,
    description: "How often a server looks for sandboxes that are idle or at the end of their life; 0 never.",
    variables: { CONTAINER_CLEANUP_INTERVAL: milliseconds, SANDBOX_REAPER_INTERVAL: seconds },
  },
  "reaper.busyCpus": {
    kind: numberFrom(0, { whole: false }),
    default: 0.05,
    description: "A sandbox that uses more processors than this is at work, not idle; 0 does not look.",
  },
  "reaper.snapshot": {
    kind: flag,
    default: false,
    description: "Whether a snapshot is uploaded before an idle sandbox is stopped.",
  },
};
