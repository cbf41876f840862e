import type { Isolation } from "@aido/sdk/protocol";
import { addChanged } from "../merge/overlaps.ts";
import type { AdapterOptions } from "../messages/adapter-environment.ts";
import type { Completion, ErrorMessage, WorkerMessage } from "../messages/message.ts";
import { NO_CONTAINER, type StoryProgress, type SwarmContainer } from "../state/swarm-state.ts";
import type { StoryStatus } from "../tasks/task-file.ts";

/** How a worker is to be run: kept with it, so that it goes on in the same way whoever goes on with it. */
export interface WorkerPlan {
  readonly isolation: Isolation;
  /** Undefined is the project's own. */
  readonly image?: string | undefined;
  readonly agent: AdapterOptions;
  /** Variables of whoever runs the swarm that the agent gets too: their names, never their values. */
  readonly envNames: readonly string[];
  /** A worker that says nothing for so long is stopped; 0 is no limit. */
  readonly silenceMs: number;
}

/** The agent's own count of what a worker used so far. */
export interface WorkerUsage {
  readonly turns: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** What is known of a worker beyond its entry in the state. All but the plan can be read again from its output. */
export interface WorkerRecord {
  readonly swarmId: string;
  readonly worker: string;
  readonly plan: WorkerPlan;
  /** Whose output this is; undefined before there is one. */
  readonly containerId?: string | undefined;
  readonly startedAt?: string | undefined;
  /** Behind the last whole message, and behind the last bytes of the log. */
  readonly stdoutOffset: number;
  readonly stderrOffset: number;
  readonly stories: Readonly<Record<string, StoryStatus>>;
  readonly usage: WorkerUsage;
  /** How long it has worked in this container, as far as anybody saw. */
  readonly seconds?: number | undefined;
  /** In containers that it had before, or before it was begun anew: budgets count them too. */
  readonly usedBefore: WorkerUsage;
  readonly secondsBefore?: number | undefined;
  readonly changedFiles: readonly string[];
  readonly lastLines: readonly string[];
  readonly last?: Completion["payload"] | ErrorMessage["payload"] | undefined;
  /** The container that it had has work that origin lacks: until it has completed it goes on in it, and is not given a new one. */
  readonly isKept?: boolean | undefined;
  /** Why it ended as it did, where its last message does not say. */
  readonly reason?: string | undefined;
}

export const NO_USAGE: WorkerUsage = { turns: 0, inputTokens: 0, outputTokens: 0 };
const LAST_LINES = 20;

export function newRecord(swarmId: string, worker: string, plan: WorkerPlan): WorkerRecord {
  return {
    swarmId,
    worker,
    plan,
    stdoutOffset: 0,
    stderrOffset: 0,
    stories: {},
    usage: NO_USAGE,
    usedBefore: NO_USAGE,
    changedFiles: [],
    lastLines: [],
  };
}

/** The same worker with nothing done yet, for another container. */
export function beginAnew(record: WorkerRecord): WorkerRecord {
  return {
    ...newRecord(record.swarmId, record.worker, record.plan),
    usedBefore: addUsage(record.usedBefore, record.usage),
    secondsBefore: (record.secondsBefore ?? 0) + (record.seconds ?? 0),
  };
}

/** How adapters say it, whatever else they say. */
const NOT_PUSHED = "The branch is not pushed";

/** Whether origin has all that a worker did, by its own last word. Without one, only what was never begun has nothing to lose. */
export function isAllAtOrigin({
  last,
  isKept,
  startedAt,
  stdoutOffset,
  stderrOffset,
}: WorkerRecord): boolean {
  if (isKept) return false;
  if (last === undefined) return startedAt === undefined && stdoutOffset + stderrOffset === 0;
  const said = "errors" in last ? last.errors : [last.message];
  return !said.some((text) => text.includes(NOT_PUSHED));
}

/** What is known of an entry's very container; of a lost record, or of one for another container, only the plan is left. */
export function recordFor({
  swarmId,
  entry: { containerName, containerId },
  record,
  plan,
}: {
  swarmId: string;
  entry: SwarmContainer;
  record: WorkerRecord | undefined;
  plan: WorkerPlan;
}): WorkerRecord {
  if (record === undefined) return { ...newRecord(swarmId, containerName, plan), containerId };
  if (containerId === NO_CONTAINER || record.containerId === containerId) return record;
  return { ...beginAnew(record), containerId };
}

/** With one message more, which ends at the offset. Stories that the task file does not have count for nothing. */
export function afterMessage(
  record: WorkerRecord,
  message: WorkerMessage,
  { offset, known }: { offset: number; known: ReadonlySet<string> },
): WorkerRecord {
  const read = { ...record, stdoutOffset: offset };
  if (message.type !== "progress-update") return { ...read, last: message.payload };
  const { storyId, status, usage, changedFiles } = message.payload;
  return {
    ...read,
    ...(known.has(storyId) ? { stories: { ...record.stories, [storyId]: status } } : {}),
    ...(usage === undefined ? {} : { usage: most(record.usage, usage) }),
    ...(changedFiles === undefined
      ? {}
      : { changedFiles: [...addChanged(new Set(record.changedFiles), changedFiles)] }),
  };
}

export function afterLines(record: WorkerRecord, lines: readonly string[]): WorkerRecord {
  if (lines.length === 0) return record;
  return { ...record, lastLines: [...record.lastLines, ...lines].slice(-LAST_LINES) };
}

/** Skipped stories are part of the total and of no other count. */
export function countStories(statuses: Iterable<StoryStatus>): StoryProgress {
  const counts: StoryProgress = { total: 0, completed: 0, failed: 0, inProgress: 0, pending: 0 };
  for (const status of statuses) {
    counts.total += 1;
    if (status === "in_progress") counts.inProgress += 1;
    else if (status !== "skipped") counts[status] += 1;
  }
  return counts;
}

export function addUsage(one: WorkerUsage, other: WorkerUsage): WorkerUsage {
  return {
    turns: one.turns + other.turns,
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
  };
}

/** An agent that counts from the start again takes back nothing of what it used. */
function most(one: WorkerUsage, other: WorkerUsage): WorkerUsage {
  return {
    turns: Math.max(one.turns, other.turns),
    inputTokens: Math.max(one.inputTokens, other.inputTokens),
    outputTokens: Math.max(one.outputTokens, other.outputTokens),
  };
}
