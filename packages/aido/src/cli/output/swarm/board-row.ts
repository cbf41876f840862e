import type { BoardWorker } from "./board.ts";
import type { Span } from "./spans.ts";

/** What gives way first when the terminal is short: the greater rank does. */
export const RANK = {
  header: 0,
  activeWorker: 1,
  notice: 2,
  endedBadly: 3,
  otherWorker: 4,
  currentStory: 5,
  lastLine: 6,
  ending: 7,
  moreNotices: 8,
  failedStory: 9,
  moreLines: 10,
  gap: 30,
  openStory: 31,
  endedStory: 32,
  storyOfOther: 33,
} as const;

export interface Row {
  readonly rank: number;
  readonly spans: readonly Span[];
  /** On the row that stands for the worker. */
  readonly worker?: BoardWorker;
}

/** The rows that fit, in their order, and the workers that do not. */
export function chooseRows(rows: readonly Row[], height: number): { shown: Row[]; hidden: BoardWorker[] } {
  const order = rows.map((_, index) => index).sort((one, other) => rank(rows, one) - rank(rows, other));
  const kept = new Set(order.slice(0, height));
  const shown = rows.filter((_, index) => kept.has(index));
  const hidden = rows.flatMap(({ worker }, index) => (worker && !kept.has(index) ? [worker] : []));
  return { shown, hidden };
}

function rank(rows: readonly Row[], index: number): number {
  return rows[index]?.rank ?? 0;
}
