import type { SettingDefinition } from "./setting-definition.ts";
import { duration, flag, numberFrom, seconds, text } from "./value-kinds.ts";

/** Sandboxes with a sidecar API, and what they get when they do not say. */
export interface SidecarValues {
  "sidecar.image": string;
  "sidecar.publicHost": string;
  "sidecar.httpPort": number;
  "sidecar.ownPorts": boolean;
  "sidecar.pullImage": boolean;
  "sidecar.idleTimeout": number;
  "sidecar.maxIdleTimeout": number;
  "sidecar.ttl": number;
  "sidecar.maxTtl": number;
}

export const SIDECAR_SETTINGS: { readonly [K in keyof SidecarValues]: SettingDefinition<SidecarValues[K]> } =
  {
    "sidecar.image": {
      kind: text,
      default: "ghcr.io/tangle-network/sidecar:latest",
      description:
        "Image of sidecar sandboxes that name none. One that nobody has set is used where the engine has it, else ubuntu:22.04; the local driver gives the host's programs.",
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
      description:
        "Whether an image that the machine does not have is pulled for sidecar sandboxes, whoever names it, also when one comes back.",
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
  };
