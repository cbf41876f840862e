import type { SettingDefinition } from "./setting-definition.ts";
import { bytes } from "./value-kinds.ts";

/** What histories of workspaces may take. */
export interface HistoryValues {
  "history.maxBytes": number;
}

export const HISTORY_SETTINGS: {
  readonly [K in keyof HistoryValues]: SettingDefinition<HistoryValues[K]>;
} = {
  "history.maxBytes": {
    kind: bytes,
    default: 2 * 1024 ** 3,
    description:
      "How much the history of one sandbox may take on the disk; later changes are not recorded. 0 means no limit.",
  },
};
