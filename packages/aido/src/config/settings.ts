import { PROFILES, type ProfileName } from "@aido/sdk/protocol";
import { type AgentSettings, agents } from "./agent-settings.ts";
import { AWS_SETTINGS, type AwsValues } from "./aws-settings.ts";
import { GC_SETTINGS, type GcValues } from "./gc-settings.ts";
import { HISTORY_SETTINGS, type HistoryValues } from "./history-settings.ts";
import { IMAGE_SETTINGS, type ImageValues } from "./image-settings.ts";
import { LIMIT_SETTINGS, type LimitValues } from "./limit-settings.ts";
import { OBJECT_SETTINGS, type ObjectValues } from "./object-settings.ts";
import { QOS_SETTINGS, type QosValues } from "./qos-settings.ts";
import { REAPER_SETTINGS, type ReaperValues } from "./reaper-settings.ts";
import type { Secret } from "./secret.ts";
import { SERVE_SETTINGS, type ServeValues } from "./serve-settings.ts";
import type { SettingDefinition } from "./setting-definition.ts";
import { SIDECAR_SETTINGS, type SidecarValues } from "./sidecar-settings.ts";
import { SWARM_SETTINGS, type SwarmValues } from "./swarm-settings.ts";
import { duration, flag, numberFrom, oneOf, seconds, secret, text, url } from "./value-kinds.ts";
import { WORKSPACE_SETTINGS, type WorkspaceValues } from "./workspace-settings.ts";

export type DriverChoice = "auto" | "docker" | "local";
export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

/** Every setting by its dotted key, with the value it has when nobody sets it. */
export interface Values
  extends ObjectValues,
    GcValues,
    HistoryValues,
    WorkspaceValues,
    AwsValues,
    SwarmValues,
    QosValues,
    LimitValues,
    ImageValues,
    SidecarValues,
    ReaperValues,
    ServeValues {
  driver: DriverChoice;
  dataDir: string;
  dockerHost: string | undefined;
  dockerHosts: string | undefined;
  dockerCertPath: string | undefined;
  agentPath: string | undefined;
  profile: ProfileName;
  defaultImage: string | undefined;
  ttl: number | undefined;
  idleTimeout: number | undefined;
  batchTtl: number;
  workflowSchedule: string;
  operatorAddress: string | undefined;
  operatorCapacity: number | undefined;
  agents: AgentSettings | undefined;
  defaultAgent: string;
  server: string | undefined;
  apiKey: Secret | undefined;
  requestTimeout: number;
  logLevel: LogLevel;
  logFormat: "auto" | "json" | "text";
  json: boolean;
}

/** The one table: the loader, `aido config show` and the reference page are made of it. */
export const SETTINGS: { readonly [K in keyof Values]: SettingDefinition<Values[K]> } = {
  driver: {
    kind: oneOf("auto", "docker", "local"),
    default: "auto",
    description: "Where sandboxes run. `auto` takes Docker when it answers, else the local driver.",
  },
  dataDir: {
    kind: text,
    default: ".aido",
    description: "Records, files and evidence. Relative to the current directory; `~/` is your home.",
  },
  dockerHost: {
    kind: text,
    default: undefined,
    description: "Address of the Docker engine; the machine's own when unset.",
    variables: { DOCKER_HOST: text },
  },
  dockerHosts: {
    kind: text,
    default: undefined,
    description:
      "Addresses of several Docker engines, separated by commas; each sandbox goes to the least loaded. Takes the place of dockerHost.",
  },
  dockerCertPath: {
    kind: text,
    default: undefined,
    description: "Directory with ca.pem, cert.pem and key.pem for an engine that is reached over TLS.",
    variables: { DOCKER_CERT_PATH: text },
  },
  agentPath: {
    kind: text,
    default: undefined,
    description: "The supervisor's binary; the one that belongs to this aido when unset.",
  },
  profile: {
    kind: oneOf(...PROFILES),
    default: "aido",
    description: "Defaults of new sandboxes that name no profile.",
  },
  defaultImage: {
    kind: text,
    default: undefined,
    description: "Image of new sandboxes that name none; the profile's when unset.",
  },
  ttl: {
    kind: duration,
    default: undefined,
    description: "Life of new sandboxes that name none; no end when unset.",
    variables: { SANDBOX_DEFAULT_MAX_LIFETIME: seconds },
  },
  idleTimeout: {
    kind: duration,
    default: undefined,
    description: "New sandboxes that name none are stopped when unused for so long; never when unset.",
  },
  ...LIMIT_SETTINGS,
  batchTtl: {
    kind: duration,
    default: 24 * 60 * 60_000,
    description: "How long the results of a batch are kept when nobody collects them.",
  },
  workflowSchedule: {
    kind: text,
    default: "0 * * * * *",
    description:
      "When a server looks for workflows that are due: six fields as of cron, seconds first, in UTC; `off` never.",
    variables: { WORKFLOW_CRON_SCHEDULE: text },
  },
  operatorAddress: {
    kind: text,
    default: undefined,
    description:
      "Address of this operator, for batches that several operators share; all of a batch is made here when unset.",
  },
  operatorCapacity: {
    kind: numberFrom(1, { whole: true }),
    default: undefined,
    description:
      "The most sandboxes that run at once on this data directory; one more is refused. No limit when unset.",
    variables: { OPERATOR_MAX_CAPACITY: numberFrom(1, { whole: true }) },
  },
  ...IMAGE_SETTINGS,
  agents: {
    kind: agents,
    default: undefined,
    description:
      "Agents that can be run in sandboxes, by identifier, besides those that aido knows. See the guide on agents.",
  },
  defaultAgent: {
    kind: text,
    default: "claude",
    description: "The agent that is run when none is named, unless `agents` has one called `default`.",
    variables: { SIDECAR_DEFAULT_HARNESS: text },
  },
  server: {
    kind: url,
    default: undefined,
    description: "Address of a server to use in place of this machine.",
    variables: { AIDO_URL: url },
  },
  apiKey: {
    kind: secret,
    default: undefined,
    description: "Key for that server. `AIDO_API_KEY_FILE` names a file that holds it.",
  },
  requestTimeout: {
    kind: duration,
    default: 30_000,
    description: "How long one request to a server may take.",
    variables: { REQUEST_TIMEOUT_SECS: seconds },
  },
  ...SIDECAR_SETTINGS,
  ...REAPER_SETTINGS,
  ...SERVE_SETTINGS,
  ...OBJECT_SETTINGS,
  ...GC_SETTINGS,
  ...QOS_SETTINGS,
  ...HISTORY_SETTINGS,
  ...WORKSPACE_SETTINGS,
  ...AWS_SETTINGS,
  ...SWARM_SETTINGS,
  logLevel: {
    kind: oneOf("debug", "info", "warn", "error", "silent"),
    default: "warn",
    description: "What is logged to standard error.",
  },
  logFormat: {
    kind: oneOf("auto", "json", "text"),
    default: "auto",
    description: "`auto` writes text to a terminal and JSON elsewhere.",
  },
  json: { kind: flag, default: false, description: "Results as JSON, as with `--json`." },
};

export const KEYS = Object.keys(SETTINGS) as readonly (keyof Values)[];

/** `limits.openFiles` is set by AIDO_LIMITS_OPEN_FILES. */
export function variableOf(key: keyof Values): string {
  return `AIDO_${key
    .replace(".", "_")
    .replace(/[A-Z]/g, (letter) => `_${letter}`)
    .toUpperCase()}`;
}
