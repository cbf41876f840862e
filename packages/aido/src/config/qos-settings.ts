import type { SettingDefinition } from "./setting-definition.ts";
import { duration, flag, seconds, text, uint64, type ValueKind } from "./value-kinds.ts";

/** Whether and how an operator reports its counters. */
export interface QosValues {
  "qos.enabled": boolean;
  "qos.interval": number;
  "qos.dryRun": boolean;
  "qos.serviceId": string | undefined;
  "qos.blueprintId": string | undefined;
}

/** Other programs have variables of these names too, so what they hold is looked at only by whoever reports. */
const anyText: ValueKind<string> = { ...text, what: uint64.what };

export const QOS_SETTINGS: { readonly [K in keyof QosValues]: SettingDefinition<QosValues[K]> } = {
  "qos.enabled": {
    kind: flag,
    default: false,
    description:
      "Whether a server reports its counters at intervals. This version has no chain runner to submit them with, so it needs `qos.dryRun` too.",
    variables: { QOS_ENABLED: flag },
  },
  "qos.interval": {
    kind: duration,
    default: 60_000,
    description: "How often it reports; more than 0.",
    variables: { QOS_METRICS_INTERVAL_SECS: seconds },
  },
  "qos.dryRun": {
    kind: flag,
    default: false,
    description: "Whether reports are written to the server's log in place of being submitted.",
    variables: { QOS_DRY_RUN: flag },
  },
  "qos.serviceId": {
    kind: uint64,
    default: undefined,
    description: "The service that is reported for; needed to submit, a dry run does without.",
    variables: { SERVICE_ID: anyText },
  },
  "qos.blueprintId": {
    kind: uint64,
    default: undefined,
    description: "The blueprint of that service; needed to submit, a dry run does without.",
    variables: { BLUEPRINT_ID: anyText },
  },
};
