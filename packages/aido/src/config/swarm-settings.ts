import { ISOLATIONS, type Isolation } from "@aido/sdk/protocol";
import type { SettingDefinition } from "./setting-definition.ts";
import { duration, numberFrom, oneOf } from "./value-kinds.ts";

/** How swarms are run where the command line does not say. */
export interface SwarmValues {
  "swarm.isolation": Isolation;
  "swarm.maxWorkers": number;
  "swarm.maxSilence": number;
  "swarm.maxTurns": number | undefined;
  "swarm.maxTokens": number | undefined;
  "swarm.maxTime": number | undefined;
  "swarm.totalTurns": number | undefined;
  "swarm.totalTokens": number | undefined;
  "swarm.totalTime": number | undefined;
}

const count = numberFrom(1, { whole: true });

export const SWARM_SETTINGS: { readonly [K in keyof SwarmValues]: SettingDefinition<SwarmValues[K]> } = {
  "swarm.isolation": {
    kind: oneOf(...ISOLATIONS),
    default: "sysbox",
    description: "What keeps a swarm's workers apart. Refused where it is not there, never replaced.",
  },
  "swarm.maxWorkers": {
    kind: count,
    default: 4,
    description: "How many workers of a swarm run at once.",
  },
  "swarm.maxSilence": {
    kind: duration,
    default: 1_800_000,
    description: "A worker that says nothing for so long is stopped; 0 never.",
  },
  "swarm.maxTurns": {
    kind: count,
    default: undefined,
    description: "How many turns a worker's agent may take.",
  },
  "swarm.maxTokens": {
    kind: count,
    default: undefined,
    description: "How many tokens a worker's agent may read and write.",
  },
  "swarm.maxTime": {
    kind: duration,
    default: undefined,
    description: "How long a worker may run.",
  },
  "swarm.totalTurns": {
    kind: count,
    default: undefined,
    description: "How many turns all workers of a swarm may take together.",
  },
  "swarm.totalTokens": {
    kind: count,
    default: undefined,
    description: "How many tokens all workers of a swarm may read and write together.",
  },
  "swarm.totalTime": {
    kind: duration,
    default: undefined,
    description: "How long a swarm may be run, all its runs together.",
  },
};
