import { AidoError } from "@aido/sdk/protocol";

export const WORKER_AGENTS = ["claude", "acp", "command"] as const;
export type WorkerAgent = (typeof WORKER_AGENTS)[number];

/** What a worker's adapter is told besides its task-request, in its environment. */
export interface AdapterOptions {
  /** How the agent is spoken to; see the agents of the same names. */
  readonly agent: WorkerAgent;
  /** The program of an `acp` or `command` agent, with its arguments; `claude` has one of its own. */
  readonly argv?: readonly string[] | undefined;
  readonly model?: string | undefined;
  /** Budgets of the worker as a whole; undefined is no limit. Tokens are those read and written together. */
  readonly maxTurns?: number | undefined;
  readonly maxTokens?: number | undefined;
  readonly maxSeconds?: number | undefined;
  /** How long an agent may show no sign of life before its story fails; undefined is the adapter's own limit. */
  readonly maxSilentSeconds?: number | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

const COUNTS = {
  maxTurns: "AIMI_MAX_TURNS",
  maxTokens: "AIMI_MAX_TOKENS",
  maxSeconds: "AIMI_MAX_SECONDS",
  maxSilentSeconds: "AIMI_MAX_SILENT_SECONDS",
} as const;

export function toAdapterEnvironment(options: AdapterOptions): Record<string, string> {
  const env: Record<string, string> = { AIMI_AGENT: options.agent };
  if (options.argv !== undefined) env["AIMI_AGENT_ARGV"] = JSON.stringify(options.argv);
  if (options.model !== undefined) env["AIMI_MODEL"] = options.model;
  for (const [field, name] of entriesOf(COUNTS)) {
    const count = options[field];
    if (count !== undefined) env[name] = String(count);
  }
  return env;
}

export function readAdapterEnvironment(env: Environment): AdapterOptions {
  const agent = WORKER_AGENTS.find((name) => name === (env["AIMI_AGENT"] || "claude"));
  if (agent === undefined) throw wrong("AIMI_AGENT", `is not one of ${WORKER_AGENTS.join(", ")}`);
  const argv = readArgv(env["AIMI_AGENT_ARGV"]);
  if (agent !== "claude" && argv === undefined) throw wrong("AIMI_AGENT_ARGV", "is missing");
  const counts = entriesOf(COUNTS).map(([field, name]) => [field, readCount(env, name)] as const);
  return { agent, argv, model: env["AIMI_MODEL"] || undefined, ...Object.fromEntries(counts) };
}

function readArgv(text: string | undefined): readonly string[] | undefined {
  if (text === undefined || text === "") return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw wrong("AIMI_AGENT_ARGV", "is not JSON");
  }
  if (isWords(value) && value[0] !== "") return value;
  throw wrong("AIMI_AGENT_ARGV", "is not a list of words");
}

function isWords(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === "string");
}

function readCount(env: Environment, name: string): number | undefined {
  const text = env[name];
  if (text === undefined || text === "") return undefined;
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw wrong(name, "is not a whole number above 0");
}

const entriesOf = <Entries extends object>(entries: Entries) =>
  Object.entries(entries) as [keyof Entries, Entries[keyof Entries]][];

function wrong(name: string, problem: string): AidoError {
  return new AidoError("VALIDATION_ERROR", `${name} ${problem}`, { details: { field: name } });
}
