import type { Secret } from "./secret.ts";
import type { SettingDefinition } from "./setting-definition.ts";
import { bytes, duration, flag, milliseconds, numberFrom, secret, text, url } from "./value-kinds.ts";

/** Where `aido serve` listens, whom it lets in and how much each may have. */
export interface ServeValues {
  "serve.host": string;
  "serve.port": number;
  "serve.sshHost": string;
  "serve.sshPort": number | undefined;
  "serve.open": boolean;
  "serve.rateLimit": number;
  "serve.maxSandboxes": number;
  "serve.maxCpus": number;
  "serve.maxMemory": number;
  "serve.maxBody": number;
  "serve.bodyIdleTimeout": number;
  "serve.timeout": number;
  "serve.corsOrigins": string | undefined;
  "serve.pool": string | undefined;
  "serve.jwtSecret": Secret | undefined;
  "serve.jwksUrl": string | undefined;
  "serve.jwtIssuer": string | undefined;
  "serve.jwtAudience": string | undefined;
  "serve.publicUrl": string | undefined;
}

export const SERVE_SETTINGS: { readonly [K in keyof ServeValues]: SettingDefinition<ServeValues[K]> } = {
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
  "serve.open": {
    kind: flag,
    default: false,
    description:
      "Whether a server on loopback whose keys are all revoked lets everybody in, as one that never had any does.",
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
  "serve.maxCpus": {
    kind: numberFrom(0, { whole: false }),
    default: 0,
    description: "Processors of all sandboxes of one key that run or are being started; 0 means no limit.",
  },
  "serve.maxMemory": {
    kind: bytes,
    default: 0,
    description: "Memory of all sandboxes of one key that run or are being started; 0 means no limit.",
  },
  "serve.maxBody": {
    kind: bytes,
    default: 32 * 1024 * 1024,
    description: "Largest JSON body of a request; files are streamed and not bounded by it.",
  },
  "serve.bodyIdleTimeout": {
    kind: duration,
    default: 2 * 60_000,
    description: "How long a request may pause within its body before it is refused with 408.",
  },
  "serve.timeout": {
    kind: duration,
    default: 30 * 60_000,
    description:
      "Life of sandboxes made over HTTP that name none; with 0 it is that of `ttl`. Not of the profile `sidecar`, whose own is `sidecar.ttl`.",
    variables: { DEFAULT_TIMEOUT: milliseconds },
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
};
