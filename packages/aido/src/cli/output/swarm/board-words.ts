import type { WorkerState } from "../../../core/swarm/swarm-event.ts";
import type { StoryStatus } from "../../../core/swarm/tasks/task-file.ts";
import { formatDuration } from "../format.ts";
import type { BoardWorker } from "./board.ts";
import type { Style } from "./spans.ts";

export const STATE_STYLES = {
  creating: "cyan",
  running: "cyan",
  failed: "red",
  stopped: "yellow",
  pending: "dim",
  completed: "green",
} as const satisfies Record<WorkerState, Style>;

/** What a swarm that was interrupted leaves. */
export const AFTER_INTERRUPT = "the workers' containers go on, `aido swarm resume` takes them up again";

export const STORY_MARKS = {
  pending: ["·", "dim"],
  in_progress: ["▸", "cyan"],
  completed: ["✓", "green"],
  failed: ["✗", "red"],
  skipped: ["-", "dim"],
} as const satisfies Record<StoryStatus, readonly [string, Style]>;

/** Those at work first. */
export const STATE_ORDER: readonly WorkerState[] = [
  "running",
  "creating",
  "failed",
  "stopped",
  "pending",
  "completed",
];

/** Stories by status; one that is skipped has ended as well. */
export function countStories(stories: BoardWorker["stories"]) {
  const of = (status: StoryStatus) => stories.filter((story) => story.status === status).length;
  return {
    total: stories.length,
    completed: of("completed"),
    failed: of("failed"),
    skipped: of("skipped"),
  };
}

export function formatCount(count: number): string {
  if (count < 1000) return String(count);
  const [value, unit] =
    count < 999_500 ? [count / 1e3, "k"] : count < 999.5e6 ? [count / 1e6, "M"] : [count / 1e9, "G"];
  return `${value < 9.95 ? value.toFixed(1).replace(/\.0$/, "") : Math.round(value)}${unit}`;
}

export function tokensOf({ usage }: BoardWorker): number {
  return usage.inputTokens + usage.outputTokens;
}

export function formatElapsed(from: Date | undefined, to: Date): string {
  if (from === undefined) return "";
  const seconds = Math.max(0, Math.floor((to.getTime() - from.getTime()) / 1000));
  return seconds === 0 ? "0s" : formatDuration(seconds * 1000);
}

/** How long it has worked, or had worked when it ended; empty when nobody can tell. */
export function workerElapsed({ state, startedAt, endedAt }: BoardWorker, now: Date): string {
  if (endedAt === undefined && state !== "running" && state !== "creating") return "";
  return formatElapsed(startedAt, endedAt ?? now);
}

export function countOf(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** How many are in which state, as `2 running`. */
export function stateCounts(workers: readonly BoardWorker[]) {
  return STATE_ORDER.flatMap((state) => {
    const count = workers.filter((worker) => worker.state === state).length;
    return count === 0 ? [] : [[`${count} ${state}`, STATE_STYLES[state]] as const];
  });
}
