import { AidoError, ISOLATIONS, type Isolation } from "@aido/sdk/protocol";
import type { Budgets } from "../../../core/swarm/follow/budgets.ts";
import { WORKER_AGENTS, type WorkerAgent } from "../../../core/swarm/messages/adapter-environment.ts";
import type { WorkerPlan } from "../../../core/swarm/records/worker-record.ts";
import type { CliContext } from "../../context.ts";
import { parseDuration } from "../../options/duration.ts";
import { parseNumber } from "../../options/numbers.ts";

/** As the command line has them; `run` and `resume` share these. */
export interface WorkerFlags {
  dir?: string;
  max?: string;
  isolation?: string;
  agent?: string;
  agentArgv?: string;
  model?: string;
  env?: string[];
  image?: string;
  build?: boolean;
  maxTurns?: string;
  maxTokens?: string;
  maxTime?: string;
  maxSilence?: string;
  swarmMaxTurns?: string;
  swarmMaxTokens?: string;
  swarmMaxTime?: string;
}

/** Of the swarm as a whole. */
export interface SwarmShape {
  readonly maxWorkers: number;
  readonly budgets: Budgets;
}

/** What flags say, then what was chosen before, then what settings say. */
export interface SwarmChoices {
  readonly shapeFor: (before: SwarmShape | undefined) => SwarmShape;
  readonly planFor: (before: WorkerPlan | undefined) => WorkerPlan;
}

const MOST_WORKERS = 100;
const MOST = 1_000_000_000_000;
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Everything that can be wrong with them is told before anything is done. */
export function readChoices(
  context: CliContext,
  flags: WorkerFlags,
  argv: readonly string[] = [],
): SwarmChoices {
  const setting = settingsOf(context);
  const given = readGiven(context, flags, argv);
  const defaults: WorkerPlan = {
    isolation: setting("isolation") as Isolation,
    agent: {
      agent: "claude",
      maxTurns: setting("maxTurns") as number | undefined,
      maxTokens: setting("maxTokens") as number | undefined,
      maxSeconds: toSeconds(setting("maxTime") as number | undefined),
    },
    envNames: [],
    silenceMs: (setting("maxSilence") as number | undefined) ?? 0,
  };
  const flagged = defined({
    maxTurns: count(flags.swarmMaxTurns, "--swarm-max-turns"),
    maxTokens: count(flags.swarmMaxTokens, "--swarm-max-tokens"),
    maxSeconds: time(flags.swarmMaxTime, "--swarm-max-time"),
  });
  const max = count(flags.max, "--max", MOST_WORKERS);
  const usual: SwarmShape = {
    maxWorkers: (setting("maxWorkers") as number | undefined) ?? 4,
    budgets: {
      maxTurns: setting("totalTurns") as number | undefined,
      maxTokens: setting("totalTokens") as number | undefined,
      maxSeconds: toSeconds(setting("totalTime") as number | undefined),
    },
  };
  return {
    shapeFor: (before = usual) => ({
      maxWorkers: max ?? before.maxWorkers,
      budgets: { ...before.budgets, ...flagged },
    }),
    planFor: (before = defaults) => withSilence(merge(before, given)),
  };
}

interface Given {
  readonly plan: Partial<Omit<WorkerPlan, "agent">>;
  readonly agent: Partial<WorkerPlan["agent"]>;
}

function readGiven(context: CliContext, flags: WorkerFlags, argv: readonly string[]): Given {
  const agent = flags.agent === undefined ? undefined : readAgent(flags.agent);
  const words = readArgv(flags.agentArgv, argv);
  if (words !== undefined && (agent === undefined || agent === "claude")) {
    throw new AidoError("VALIDATION_ERROR", `What is ${JSON.stringify(words[0])} for?`, {
      hint: "An agent's program goes with --agent acp or --agent command: `aido swarm --agent acp -- my-agent --flag`.",
    });
  }
  if (agent !== undefined && agent !== "claude" && words === undefined) {
    throw new AidoError("VALIDATION_ERROR", `--agent ${agent} needs the agent's program`, {
      hint: `Write it behind \`--\`: \`aido swarm --agent ${agent} -- my-agent --flag\`.`,
    });
  }
  const maxSeconds = time(flags.maxTime, "--max-time");
  return {
    plan: defined({
      isolation: flags.isolation === undefined ? undefined : readIsolation(flags.isolation),
      image: flags.image,
      envNames: flags.env === undefined ? undefined : readEnvNames(context, flags.env),
      silenceMs:
        flags.maxSilence === undefined ? undefined : parseDuration(flags.maxSilence, "--max-silence"),
    }),
    agent: {
      ...defined({
        model: flags.model,
        maxTurns: count(flags.maxTurns, "--max-turns"),
        maxTokens: count(flags.maxTokens, "--max-tokens"),
        maxSeconds,
      }),
      ...(agent === undefined ? {} : { agent, argv: words }),
    },
  };
}

function merge(before: WorkerPlan, { plan, agent }: Given): WorkerPlan {
  return { ...before, ...plan, agent: { ...before.agent, ...agent } };
}

/** The adapter is told as well: it sees what its agent does, the host only what the adapter says. */
function withSilence(plan: WorkerPlan): WorkerPlan {
  const seconds = plan.silenceMs === 0 ? undefined : Math.max(1, Math.round(plan.silenceMs / 1000));
  return { ...plan, agent: { ...plan.agent, maxSilentSeconds: seconds } };
}

function readIsolation(text: string): Isolation {
  const isolation = ISOLATIONS.find((each) => each === text);
  if (isolation !== undefined) return isolation;
  throw choice("--isolation", text, ISOLATIONS);
}

function readAgent(text: string): WorkerAgent {
  const agent = WORKER_AGENTS.find((each) => each === text);
  if (agent !== undefined) return agent;
  throw choice("--agent", text, WORKER_AGENTS);
}

function choice(option: string, text: string, known: readonly string[]): AidoError {
  return new AidoError("VALIDATION_ERROR", `${option} cannot be ${JSON.stringify(text.slice(0, 80))}`, {
    hint: `Choose one of ${known.join(", ")}.`,
    details: { option },
  });
}

/** Words behind `--`, or a JSON list where a line of words would not do. */
function readArgv(json: string | undefined, words: readonly string[]): readonly string[] | undefined {
  if (json === undefined) return words.length === 0 ? undefined : words;
  const wrong = new AidoError("VALIDATION_ERROR", "--agent-argv is not a JSON list of words", {
    hint: `Write it like --agent-argv '["my-agent","--flag"]', or put the words behind \`--\`.`,
    details: { option: "--agent-argv" },
  });
  let value: readonly unknown[];
  try {
    value = JSON.parse(json);
  } catch {
    throw wrong;
  }
  const isList = Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === "string");
  if (!isList || words.length > 0 || value[0] === "") throw wrong;
  return value as string[];
}

function readEnvNames(context: CliContext, names: readonly string[]): readonly string[] {
  for (const name of names) {
    if (ENV_NAME.test(name) && context.env[name] !== undefined) continue;
    throw new AidoError("VALIDATION_ERROR", `--env cannot be ${JSON.stringify(name.slice(0, 80))}`, {
      hint: "Name a variable that is set here; its value is passed on and kept nowhere.",
      details: { option: "--env" },
    });
  }
  return [...new Set(names)];
}

function count(text: string | undefined, option: string, most: number = MOST): number | undefined {
  return text === undefined ? undefined : parseNumber(text, option, { least: 1, most, whole: true });
}

function time(text: string | undefined, option: string): number | undefined {
  if (text === undefined) return undefined;
  return toSeconds(parseDuration(text, option));
}

/** 0 is no limit. */
function toSeconds(ms: number | undefined): number | undefined {
  return ms === undefined || ms === 0 ? undefined : Math.max(1, Math.round(ms / 1000));
}

function settingsOf(context: CliContext): (name: string) => unknown {
  const known = new Map(context.settings().map(({ key, value }) => [key, value]));
  return (name) => known.get(`swarm.${name}`);
}

function defined<Value extends object>(value: Value): { [K in keyof Value]?: Exclude<Value[K], undefined> } {
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  return Object.fromEntries(entries) as { [K in keyof Value]?: Exclude<Value[K], undefined> };
}
