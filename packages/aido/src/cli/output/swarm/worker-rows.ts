import { shortWorkerName } from "../../../core/swarm/workers/worker-name.ts";
import { type BoardWorker, isEnded } from "./board.ts";
import { RANK, type Row } from "./board-row.ts";
import {
  countOf,
  countStories,
  formatCount,
  STATE_STYLES,
  STORY_MARKS,
  tokensOf,
  workerElapsed,
} from "./board-words.ts";
import { joinFitting, padded, type Span } from "./spans.ts";

const MOST_LINES = 5;
const GAP = "  ";

/** Columns of a worker's row; what has no room is left out. */
export interface Layout {
  readonly width: number;
  readonly name: number;
  readonly bar: number;
  readonly tokens: number;
}

export function chooseLayout(width: number, workers: Iterable<BoardWorker>): Layout {
  const longest = Math.max(4, ...[...workers].map(({ name }) => shortWorkerName(name).length));
  if (width < 45) return { width, name: Math.min(longest, 14), bar: 0, tokens: 8 };
  if (width < 70) return { width, name: Math.min(longest, 14), bar: 6, tokens: 8 };
  if (width < 100) return { width, name: Math.min(longest, 16), bar: 10, tokens: 11 };
  return { width, name: Math.min(longest, 30), bar: 20, tokens: 11 };
}

/** A worker and, below it, what it does: its stories, its last lines, how it ended. */
export function workerRows(worker: BoardWorker, layout: Layout, now: Date): Row[] {
  const isActive = worker.state === "running" || worker.state === "creating";
  const endedBadly = worker.state === "failed" || worker.state === "stopped";
  const rank = isActive ? RANK.activeWorker : endedBadly ? RANK.endedBadly : RANK.otherWorker;
  return [
    { rank, spans: summary(worker, layout, now), worker },
    ...storyRows(worker, isActive),
    ...lineRows(worker, isActive || endedBadly),
    ...endRows(worker, endedBadly),
  ];
}

function summary(worker: BoardWorker, layout: Layout, now: Date): Span[] {
  const { width, name, bar, tokens } = layout;
  const stories = countStories(worker.stories);
  const ended = stories.completed + stories.failed + stories.skipped;
  const { turns } = worker.usage;
  const parts: Span[][] = [
    [[padded(shortWorkerName(worker.name), name), "bold"]],
    [[padded(worker.state, 9), STATE_STYLES[worker.state]]],
    ...(bar === 0 ? [] : [progressBar(stories, bar)]),
    [padded(`${ended}/${stories.total}`, 5, "right")],
    [padded(workerElapsed(worker, now), 7, "right")],
    [padded(tokenText(tokensOf(worker), tokens), tokens, "right")],
    [padded(turns === 0 ? "" : countOf(turns, "turn"), 9, "right")],
    [[worker.branch, "dim"]],
    [[worker.title, "dim"]],
  ];
  return joinFitting(parts, width);
}

function tokenText(tokens: number, columns: number): string {
  if (tokens === 0) return "";
  return `${formatCount(tokens)} ${columns < 11 ? "tok" : "tokens"}`;
}

/** Full only when every story has ended. */
export function progressBar(
  { total, completed, failed, skipped }: ReturnType<typeof countStories>,
  columns: number,
): Span[] {
  const share = (count: number) => (total === 0 ? 0 : Math.floor((count / total) * columns));
  const good = share(completed);
  const bad = share(completed + failed) - good;
  const passed = share(completed + failed + skipped) - good - bad;
  return [
    ["█".repeat(good), "green"],
    ["▓".repeat(bad), "red"],
    ["▒".repeat(passed), "dim"],
    ["░".repeat(columns - good - bad - passed), "dim"],
  ];
}

function storyRows({ stories, state }: BoardWorker, isActive: boolean): Row[] {
  return stories.map(({ id, title, status }) => {
    const [mark, style] = STORY_MARKS[status];
    const isCurrent = status === "in_progress" && !isEnded(state);
    const rank =
      status === "failed"
        ? RANK.failedStory
        : isCurrent
          ? RANK.currentStory
          : !isActive
            ? RANK.storyOfOther
            : status === "pending"
              ? RANK.openStory
              : RANK.endedStory;
    const text: Span = isCurrent || status === "failed" ? `${id} ${title}` : [`${id} ${title}`, "dim"];
    return { rank, spans: [GAP, [mark, style], " ", text] };
  });
}

function lineRows({ lines }: BoardWorker, isWanted: boolean): Row[] {
  if (!isWanted) return [];
  const last = lines.slice(-MOST_LINES);
  return last.map((line, index) => {
    const age = last.length - 1 - index;
    return {
      rank: age === 0 ? RANK.lastLine : RANK.moreLines + age,
      spans: ["  ", ["│ ", "dim"], [line, "dim"]],
    };
  });
}

function endRows({ state, reason, exitCode, prUrl }: BoardWorker, endedBadly: boolean): Row[] {
  const rows: Row[] = [];
  const exit = endedBadly && exitCode !== undefined ? `exit code ${exitCode}` : undefined;
  const why = [reason, exit].filter((part) => part !== undefined).join(", ");
  if (why !== "") {
    const rank = endedBadly ? RANK.endedBadly : RANK.ending;
    rows.push({ rank, spans: [GAP, [why, endedBadly ? STATE_STYLES[state] : "dim"]] });
  }
  if (prUrl !== undefined) rows.push({ rank: RANK.ending, spans: [GAP, prUrl] });
  return rows;
}
