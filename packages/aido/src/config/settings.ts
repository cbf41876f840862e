import { PROFILES, type ProfileName } from "@aido/sdk/protocol";
import { type AgentSettings, agents } from "./agent-settings.ts";
import { AWS_SETTINGS, type AwsValues } from "./aws-settings.ts";
import { GC_SETTINGS, type GcValues } from "./gc-settings.ts";
import { OBJECT_SETTINGS, type ObjectValues } from "./object-settings.ts";
import type { Secret } from "./secret.ts";
import type { SettingDefinition } from "./setting-definition.ts";
import { SWARM_SETTINGS, type SwarmValues } from "./swarm-settings.ts";
import { bytes, duration, flag, numberFrom, oneOf, seconds, secret, text, url } from "./value-kinds.ts";
import { WORKSPACE_SETTINGS, type WorkspaceValues } from "./workspace-settings.ts";

export type DriverChoice = "auto" | "docker" | "local";
export type ImageBuilders = "admin" | "write" | "nobody";
export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

/** Every setting by its dotted key, with the value it has when nobody sets it. */
export interface Values extends ObjectValues, GcValues, WorkspaceValues, AwsValues, SwarmValues {
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
  "limits.cpus": number | undefined;
  "limits.memory": number | undefined;
  "limits.pids": number | undefined;
  "limits.disk": number | undefined;
  "limits.openFiles": number | undefined;
  "limits.output": number | undefined;
  batchTtl: number;
  workflowSchedule: string;
  operatorAddress: string | undefined;
  "images.bases": string | undefined;
  "images.builders": ImageBuilders;
  "images.buildTimeout": number;
  "images.buildMemory": number;
  "images.buildSize": number;
  "images.buildNetwork": "bridge" | "none";
  agents: AgentSettings | undefined;
  defaultAgent: string;
  server: string | undefined;
  apiKey: Secret | undefined;
  requestTimeout: number;
  "sidecar.image": string;
  "sidecar.publicHost": string;
  "sidecar.httpPort": number;
  "sidecar.ownPorts": boolean;
  "sidecar.pullImage": boolean;
  "sidecar.idleTimeout": number;
  "sidecar.maxIdleTimeout": number;
  "sidecar.ttl": number;
  "sidecar.maxTtl": number;
  "reaper.interval": number;
  "reaper.busyCpus": number;
  "reaper.snapshot": boolean;
  "serve.host": string;
  "serve.port": number;
  "serve.sshHost": string;
  "serve.sshPort": number | undefined;
  "serve.rateLimit": number;
  "serve.maxSandboxes": number;
  "serve.maxBody": number;
  "serve.corsOrigins": string | undefined;
  "serve.pool": string | undefined;
  "serve.jwtSecret": Secret | undefined;
  "serve.jwksUrl": string | undefined;
  "serve.jwtIssuer": string | undefined;
  "serve.jwtAudience": string | undefined;
  "serve.publicUrl": string | undefined;
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
  "limits.cpus": {
    kind: numberFrom(0.01, { whole: false }),
    default: undefined,
    description: "Processors of a new sandbox; the profile's when unset.",
  },
  "limits.memory": {
    kind: bytes,
    default: undefined,
    description: "Memory and swap together of a new sandbox; the profile's when unset.",
  },
  "limits.pids": {
    kind: numberFrom(8, { whole: true }),
    default: undefined,
    description: "Processes and threads of a new sandbox; the profile's when unset.",
  },
  "limits.disk": {
    kind: bytes,
    default: undefined,
    description: "What a new sandbox may write; 0 means no limit, the profile's when unset.",
  },
  "limits.openFiles": {
    kind: numberFrom(32, { whole: true }),
    default: undefined,
    description: "Open files of each process in a new sandbox; the profile's when unset.",
  },
  "limits.output": {
    kind: bytes,
    default: undefined,
    description: "Kept output of one exec and stream, beyond which it is killed; 0 means no limit.",
  },
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
  "images.bases": {
    kind: text,
    default: undefined,
    description:
      "Images that builds may start from, such as `python:*,registry.example/team/*`; every image when unset.",
  },
  "images.builders": {
    kind: oneOf("admin", "write", "nobody"),
    default: "admin",
    description:
      "Which keys of a server may build images: commands of a build run as root in the engine's own containers, with weaker walls than a sandbox.",
  },
  "images.buildTimeout": {
    kind: duration,
    default: 10 * 60_000,
    description: "How long the build of an image may take.",
  },
  "images.buildMemory": {
    kind: bytes,
    default: 2 * 1024 ** 3,
    description: "Memory and swap together of each command of a build.",
  },
  "images.buildSize": {
    kind: bytes,
    default: 10 * 1024 ** 3,
    description: "Largest image that a build may make; a larger one is removed again.",
  },
  "images.buildNetwork": {
    kind: oneOf("bridge", "none"),
    default: "bridge",
    description: "Network of the commands of a build; packages are installed over it.",
  },
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
  "sidecar.image": {
    kind: text,
    default: "ghcr.io/tangle-network/sidecar:latest",
    description:
      "Image of sidecar sandboxes that name none. The default one is used where the engine has it, else ubuntu:22.04; the local driver gives the host's programs.",
    variables: { SIDECAR_IMAGE: text },
  },
  "sidecar.publicHost": {
    kind: text,
    default: "127.0.0.1",
    description: "Host in the addresses of sandboxes' sidecar APIs; `serve.publicUrl` comes before it.",
    variables: { SIDECAR_PUBLIC_HOST: text },
  },
  "sidecar.httpPort": {
    kind: numberFrom(0, { whole: true }),
    default: 8080,
    description:
      "With `sidecar.ownPorts`, the first port that is tried for a sandbox's own; 0 takes whichever is free.",
    variables: { SIDECAR_HTTP_PORT: numberFrom(0, { whole: true }) },
  },
  "sidecar.ownPorts": {
    kind: flag,
    default: false,
    description:
      "Whether each sandbox's sidecar API also has a port of its own on 127.0.0.1, where nothing else is answered.",
  },
  "sidecar.pullImage": {
    kind: flag,
    default: true,
    description: "Whether the image of sidecar sandboxes is pulled when the machine does not have it.",
    variables: { SIDECAR_PULL_IMAGE: flag },
  },
  "sidecar.idleTimeout": {
    kind: duration,
    default: 1_800_000,
    description: "Sidecar sandboxes that ask for nothing else are stopped when unused for so long.",
    variables: { SANDBOX_DEFAULT_IDLE_TIMEOUT: seconds },
  },
  "sidecar.maxIdleTimeout": {
    kind: duration,
    default: 7_200_000,
    description: "The most that a sidecar sandbox can ask for as its idle timeout; 0 means no bound.",
    variables: { SANDBOX_MAX_IDLE_TIMEOUT: seconds },
  },
  "sidecar.ttl": {
    kind: duration,
    default: 86_400_000,
    description: "Life of sidecar sandboxes that ask for nothing else.",
    variables: { SANDBOX_DEFAULT_MAX_LIFETIME: seconds },
  },
  "sidecar.maxTtl": {
    kind: duration,
    default: 172_800_000,
    description: "The longest life that a sidecar sandbox can ask for; 0 means no bound.",
    variables: { SANDBOX_MAX_MAX_LIFETIME: seconds },
  },
  "reaper.interval": {
    kind: duration,
    default: 30_000,
    description: "How often a server looks for sandboxes that are idle or at the end of their life; 0 never.",
    variables: { SANDBOX_REAPER_INTERVAL: seconds },
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
  "serve.host": {
    kind: text,
    default: "127.0.0.1",
    description: "Where `aido serve` listens. Any address but loopback needs API keys or tokens.",
  },
  "serve.port": {
    kind: numberFrom(0, { whole: true }),
    default: 3000,
    description: "Port of `aido serve`; 0 takes a free one.",
    variables: { PORT: numberFrom(0, { whole: true }) },
  },
  "serve.sshHost": {
    kind: text,
    default: "127.0.0.1",
    description: "Where `aido serve` listens for SSH clients, when it does.",
  },
  "serve.sshPort": {
    kind: numberFrom(0, { whole: true }),
    default: undefined,
    description: "Port on which SSH clients log in to sandboxes; 0 takes a free one, none when unset.",
    variables: { SIDECAR_SSH_PORT: numberFrom(0, { whole: true }) },
  },
  "serve.rateLimit": {
    kind: numberFrom(0, { whole: true }),
    default: 0,
    description: "Requests a minute of one key; 0 means no limit.",
  },
  "serve.maxSandboxes": {
    kind: numberFrom(0, { whole: true }),
    default: 0,
    description: "Sandboxes of one key that may exist at once; 0 means no limit.",
    variables: { MAX_CONTAINERS_PER_USER: numberFrom(0, { whole: true }) },
  },
  "serve.maxBody": {
    kind: bytes,
    default: 32 * 1024 * 1024,
    description: "Largest JSON body of a request; files are streamed and not bounded by it.",
  },
  "serve.corsOrigins": {
    kind: text,
    default: undefined,
    description: "Origins that browsers may call from, separated by commas; none when unset.",
  },
  "serve.pool": {
    kind: text,
    default: undefined,
    description:
      "Sandboxes kept ready, such as `python=4,node=2`; none when unset. See the guide on the pool.",
  },
  "serve.jwtSecret": {
    kind: secret,
    default: undefined,
    description:
      "Accept HS256 tokens signed with this. `AIDO_SERVE_JWT_SECRET_FILE` names a file that holds it.",
  },
  "serve.jwksUrl": {
    kind: url,
    default: undefined,
    description: "Accept RS256 and ES256 tokens signed by a key that is published here.",
  },
  "serve.jwtIssuer": { kind: text, default: undefined, description: "Issuer that tokens must name." },
  "serve.jwtAudience": { kind: text, default: undefined, description: "Audience that tokens must name." },
  "serve.publicUrl": {
    kind: url,
    default: undefined,
    description: "Where callers reach the server, when a proxy stands before it. Sidecar addresses begin so.",
  },
  ...OBJECT_SETTINGS,
  ...GC_SETTINGS,
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
