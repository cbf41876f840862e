import { addChanged, findOverlaps, type Overlap } from "../../../core/swarm/merge/overlaps.ts";
import type { WorkerUsage } from "../../../core/swarm/records/worker-record.ts";
import type {
  StoryChanged,
  StoryInfo,
  SwarmEvent,
  WorkerAnnounced,
  WorkerChanged,
  WorkerState,
} from "../../../core/swarm/swarm-event.ts";
import { shortWorkerName } from "../../../core/swarm/workers/worker-name.ts";

/** What is known of a swarm at one moment: all that a view of it shows. */
export interface Board {
  readonly swarmId: string | undefined;
  readonly maxWorkers: number | undefined;
  readonly isResumed: boolean;
  readonly startedAt: Date | undefined;
  readonly endedAt: Date | undefined;
  readonly isInterrupted: boolean;
  /** By name, in the order of their announcement. */
  readonly workers: ReadonlyMap<string, BoardWorker>;
  /** By path. */
  readonly overlaps: readonly Overlap[];
  /** The newest last; none twice in a row. */
  readonly warnings: readonly string[];
}

export interface BoardWorker {
  readonly name: string;
  readonly branch: string;
  readonly title: string;
  readonly state: WorkerState;
  readonly reason: string | undefined;
  readonly exitCode: number | undefined;
  readonly prUrl: string | undefined;
  readonly stories: readonly StoryInfo[];
  readonly usage: WorkerUsage;
  readonly changed: ReadonlySet<string>;
  readonly startedAt: Date | undefined;
  readonly endedAt: Date | undefined;
  /** The last ones it said, the newest last; none is empty or twice in a row. */
  readonly lines: readonly string[];
}

const MOST_LINES = 20;
const MOST_WARNINGS = 20;
const LONGEST_LINE = 2_000;

export const EMPTY_BOARD: Board = {
  swarmId: undefined,
  maxWorkers: undefined,
  isResumed: false,
  startedAt: undefined,
  endedAt: undefined,
  isInterrupted: false,
  workers: new Map(),
  overlaps: [],
  warnings: [],
};

/** The board after an event. It is the same one when the event says nothing new. */
export function nextBoard(board: Board, event: SwarmEvent): Board {
  switch (event.type) {
    case "swarm": {
      const { swarmId, maxWorkers, isResumed, at } = event;
      return { ...board, swarmId, maxWorkers, isResumed, startedAt: at };
    }
    case "worker":
      return announced(board, event);
    case "warning":
      return warned(board, event.worker, event.message);
    case "done":
      return { ...board, endedAt: event.at, isInterrupted: event.isInterrupted };
    default:
      return ofWorker(board, event);
  }
}

export function isEnded(state: WorkerState): boolean {
  return state === "completed" || state === "failed" || state === "stopped";
}

/** What several workers change in one board and did not, or fewer of them did, in the one before. */
export function newOverlaps(before: Board, after: Board): readonly Overlap[] {
  if (before.overlaps === after.overlaps) return [];
  const known = new Map(before.overlaps.map(({ path, workers }) => [path, workers.length]));
  return after.overlaps.filter(({ path, workers }) => workers.length > (known.get(path) ?? 0));
}

/** The lines of a foreign text that have something on them. */
export function textLines(text: string): string[] {
  return text
    .slice(0, LONGEST_LINE)
    .split(/\r?\n|\r/)
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

function announced(board: Board, event: WorkerAnnounced): Board {
  const { worker: name, branch, title, state, stories, usage, changedFiles, startedAt } = event;
  const workers = new Map(board.workers);
  workers.set(name, {
    name,
    branch,
    title,
    state,
    reason: undefined,
    exitCode: undefined,
    prUrl: undefined,
    stories,
    usage,
    changed: addChanged(new Set(), changedFiles),
    startedAt,
    endedAt: undefined,
    lines: [],
  });
  return { ...board, workers, overlaps: overlapsOf(workers) };
}

function overlapsOf(workers: ReadonlyMap<string, BoardWorker>): Overlap[] {
  return findOverlaps(new Map([...workers].map(([name, { changed }]) => [name, changed])));
}

function warned(board: Board, worker: string | undefined, message: string): Board {
  const text = worker === undefined ? message : `${shortWorkerName(worker)}: ${message}`;
  const warnings = added(board.warnings, [text], MOST_WARNINGS);
  return warnings === board.warnings ? board : { ...board, warnings };
}

type EventOfWorker = Exclude<SwarmEvent, { type: "swarm" | "worker" | "warning" | "done" }>;

function ofWorker(board: Board, event: EventOfWorker): Board {
  const before = board.workers.get(event.worker);
  if (before === undefined) return board;
  const after = nextWorker(before, event);
  if (after === before) return board;
  const workers = new Map(board.workers).set(event.worker, after);
  const overlaps = after.changed === before.changed ? board.overlaps : overlapsOf(workers);
  return { ...board, workers, overlaps };
}

function nextWorker(worker: BoardWorker, event: EventOfWorker): BoardWorker {
  switch (event.type) {
    case "state":
      return inState(worker, event);
    case "story":
      return withStory(worker, event);
    case "progress":
    case "log":
      return saying(worker, event.text);
    case "usage": {
      const { turns, inputTokens, outputTokens } = event;
      const { usage } = worker;
      const isSame =
        usage.turns === turns && usage.inputTokens === inputTokens && usage.outputTokens === outputTokens;
      return isSame ? worker : { ...worker, usage: { turns, inputTokens, outputTokens } };
    }
    case "files": {
      const changed = addChanged(worker.changed, event.paths);
      return changed === worker.changed ? worker : { ...worker, changed };
    }
  }
}

function inState(worker: BoardWorker, event: WorkerChanged): BoardWorker {
  const { state, at, reason = worker.reason, exitCode = worker.exitCode, prUrl = worker.prUrl } = event;
  const { startedAt = state === "running" ? at : undefined } = worker;
  const endedAt = isEnded(state) ? (worker.endedAt ?? at) : undefined;
  const isSame =
    state === worker.state &&
    reason === worker.reason &&
    exitCode === worker.exitCode &&
    prUrl === worker.prUrl &&
    startedAt === worker.startedAt;
  if (isSame) return worker;
  return { ...worker, state, reason, exitCode, prUrl, startedAt, endedAt };
}

function withStory(worker: BoardWorker, { story, status, text }: StoryChanged): BoardWorker {
  const told = saying(worker, text);
  if (!worker.stories.some((one) => one.id === story && one.status !== status)) return told;
  return { ...told, stories: worker.stories.map((one) => (one.id === story ? { ...one, status } : one)) };
}

function saying(worker: BoardWorker, text: string): BoardWorker {
  const lines = added(worker.lines, textLines(text), MOST_LINES);
  return lines === worker.lines ? worker : { ...worker, lines };
}

function added(before: readonly string[], more: readonly string[], most: number): readonly string[] {
  const all = [...before];
  for (const text of more) if (text !== all.at(-1)) all.push(text);
  return all.length === before.length ? before : all.slice(-most);
}
