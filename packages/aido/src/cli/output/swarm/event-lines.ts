import type { SwarmDone, SwarmEvent } from "../../../core/swarm/swarm-event.ts";
import { shortWorkerName } from "../../../core/swarm/workers/worker-name.ts";
import { type Board, type BoardWorker, isEnded, newOverlaps, textLines } from "./board.ts";
import {
  AFTER_INTERRUPT,
  countOf,
  countStories,
  formatElapsed,
  STATE_STYLES,
  STORY_MARKS,
  stateCounts,
  tokensOf,
  workerElapsed,
} from "./board-words.ts";
import type { Span } from "./spans.ts";

type Line = readonly Span[];
const MOST_PATHS = 5;

/** What an event changed, in lines: none when it changed nothing that is worth one. */
export function eventLines(before: Board, after: Board, event: SwarmEvent): Line[] {
  return [...ownLines(before, after, event), ...overlapLines(before, after)];
}

function ownLines(before: Board, after: Board, event: SwarmEvent): Line[] {
  switch (event.type) {
    case "swarm": {
      const begun = event.isResumed ? "resumed" : "started";
      return [
        [
          ["swarm", "bold"],
          ` ${event.swarmId} ${begun}, at most ${countOf(event.maxWorkers, "worker")} at once`,
        ],
      ];
    }
    case "done":
      return [doneLine(after, event)];
    case "warning":
      if (after === before) return [];
      return [[["warning", "yellow"], `: ${after.warnings.at(-1) ?? ""}`]];
    case "usage":
    case "files":
      return [];
    default: {
      const worker = after.workers.get(event.worker);
      if (after === before || worker === undefined) return [];
      const name: Span = [shortWorkerName(worker.name).padEnd(nameColumns(after)), "bold"];
      return workerLines(worker, before.workers.get(event.worker), event).map((line) => [
        name,
        " | ",
        ...line,
      ]);
    }
  }
}

type LineEvent = Extract<SwarmEvent, { type: "worker" | "state" | "story" | "progress" | "log" }>;

function workerLines(worker: BoardWorker, before: BoardWorker | undefined, event: LineEvent): Line[] {
  switch (event.type) {
    case "worker": {
      const stories = worker.stories.length === 1 ? "1 story" : `${worker.stories.length} stories`;
      return [[state(worker), `: ${worker.title}, ${stories}, on ${worker.branch}`]];
    }
    case "state":
      return [[state(worker), ...more(endParts(worker, event.at))]];
    case "story": {
      const story = worker.stories.find(({ id }) => id === event.story);
      const known = before?.stories.find(({ id }) => id === event.story);
      if (story === undefined || story.status === known?.status) return said(event.text);
      const [, style] = STORY_MARKS[story.status];
      const [text] = textLines(event.text);
      const detail = text === undefined || text === story.title ? "" : ` (${text})`;
      return [[`${story.id} `, [story.status.replace("_", " "), style], `: ${story.title}${detail}`]];
    }
    default:
      return said(event.text);
  }
}

function said(text: string): Line[] {
  return textLines(text).map((line) => [line]);
}

function state({ state: now }: BoardWorker): Span {
  return [now, STATE_STYLES[now]];
}

function endParts(worker: BoardWorker, at: Date): string[] {
  const { reason, exitCode, prUrl, usage, stories } = worker;
  if (!isEnded(worker.state)) return reason === undefined ? [] : [reason];
  const { total, completed } = countStories(stories);
  const elapsed = workerElapsed(worker, at);
  const tokens = tokensOf(worker);
  return [
    ...(reason === undefined ? [] : [reason]),
    ...(exitCode === undefined || exitCode === 0 || reason?.endsWith(`exit code ${exitCode}`)
      ? []
      : [`exit code ${exitCode}`]),
    `${completed} of ${total} stories completed`,
    ...(elapsed === "" ? [] : [elapsed]),
    ...(tokens === 0 ? [] : [countOf(tokens, "token")]),
    ...(usage.turns === 0 ? [] : [countOf(usage.turns, "turn")]),
    ...(prUrl === undefined ? [] : [prUrl]),
  ];
}

function more(parts: readonly string[]): Span[] {
  return parts.length === 0 ? [] : [`: ${parts.join(", ")}`];
}

function doneLine(board: Board, { isInterrupted, at }: SwarmDone): Line {
  const counts = stateCounts([...board.workers.values()]).map(([text]) => text);
  const elapsed = formatElapsed(board.startedAt, at);
  const parts = [...counts, ...(elapsed === "" ? [] : [elapsed])];
  if (!isInterrupted) return [["swarm", "bold"], " ended", ...more(parts)];
  return [["swarm", "bold"], " ", ["interrupted", "yellow"], ...more(parts), `; ${AFTER_INTERRUPT}`];
}

function overlapLines(before: Board, after: Board): Line[] {
  const byWorkers = new Map<string, string[]>();
  for (const { path, workers } of newOverlaps(before, after)) {
    const names = workers.map(shortWorkerName).join(", ");
    byWorkers.set(names, [...(byWorkers.get(names) ?? []), path]);
  }
  return [...byWorkers].map(([names, paths]) => {
    const left = paths.length - MOST_PATHS;
    const rest = left > 0 ? ` and ${countOf(left, "more file")}` : "";
    return [["overlap", "yellow"], `: ${names} change ${paths.slice(0, MOST_PATHS).join(", ")}${rest}`];
  });
}

function nameColumns({ workers }: Board): number {
  return Math.max(...[...workers.keys()].map((name) => shortWorkerName(name).length));
}
