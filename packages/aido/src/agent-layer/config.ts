import type { Network } from "@aido/sdk/protocol";

/** How the agent layer makes its containers. */
export interface DockerConfig {
  image: string;
  /** The container's name is this prefix and the session's id. */
  containerPrefix: string;
  workdir: string;
  commandTimeoutMs: number;
  /** `none` unless the agent's code may reach outside. */
  network: Network;
}

export const DOCKER_CONFIG: Readonly<DockerConfig> = {
  image: "oven/bun:latest",
  containerPrefix: "coding-agent-",
  workdir: "/workspace",
  commandTimeoutMs: 60_000,
  network: "none",
};

/** Characters of each stream that reach the model. */
export const MAX_OUTPUT_CHARS = 10_000;
