import type { SettingDefinition } from "./setting-definition.ts";
import { duration, numberFrom } from "./value-kinds.ts";

/** How many workspaces an owner may have, and how long they are kept. */
export interface WorkspaceValues {
  "workspaces.ttl": number;
  "workspaces.max": number;
}

export const WORKSPACE_SETTINGS: {
  readonly [K in keyof WorkspaceValues]: SettingDefinition<WorkspaceValues[K]>;
} = {
  "workspaces.ttl": {
    kind: duration,
    default: 30 * 86_400_000,
    description: "How long a server keeps a workspace that no sandbox has; 0 means for ever.",
  },
  "workspaces.max": {
    kind: numberFrom(0, { whole: true }),
    default: 0,
    description: "Workspaces of one owner that may exist at once; 0 means no limit.",
  },
};
