import type { SettingDefinition } from "./setting-definition.ts";
import { bytes, numberFrom } from "./value-kinds.ts";

/** What a sandbox may use when it does not say. */
export interface LimitValues {
  "limits.cpus": number | undefined;
  "limits.memory": number | undefined;
  "limits.pids": number | undefined;
  "limits.disk": number | undefined;
  "limits.openFiles": number | undefined;
  "limits.output": number | undefined;
}

export const LIMIT_SETTINGS: { readonly [K in keyof LimitValues]: SettingDefinition<LimitValues[K]> } = {
  "limits.cpus": {
    kind: numberFrom(0.01, { whole: false }),
    default: undefined,
    description: "Processors of a new sandbox; the profile's when unset.",
    variables: { DEFAULT_CPU_LIMIT: numberFrom(0.01, { whole: false }) },
  },
  "limits.memory": {
    kind: bytes,
    default: undefined,
    description: "Memory and swap together of a new sandbox; the profile's when unset.",
    variables: { DEFAULT_MEMORY_LIMIT: bytes },
  },
  "limits.pids": {
    kind: numberFrom(8, { whole: true }),
    default: undefined,
    description: "Processes and threads of a new sandbox; the profile's when unset.",
  },
  "limits.disk": {
    kind: bytes,
    default: undefined,
    description:
      "What a new sandbox may write, outputs, workspace and temporary files on disk included; 0 means no limit, the profile's when unset: 10 GiB for the profiles `aido`, `server` and `sidecar`.",
  },
  "limits.openFiles": {
    kind: numberFrom(32, { whole: true }),
    default: undefined,
    description: "Open files of each process in a new sandbox; the profile's when unset.",
  },
  "limits.output": {
    kind: bytes,
    default: undefined,
    description:
      "Kept output of one exec and stream, beyond which it is killed; 0 means no limit, the profile's when unset: 4 GiB for the profile `aido`, 1 GiB for `server` and `sidecar`.",
  },
};
