import { shortWorkerName } from "../../../core/swarm/workers/worker-name.ts";
import type { Board, BoardWorker } from "./board.ts";
import { chooseRows, RANK, type Row } from "./board-row.ts";
import {
  AFTER_INTERRUPT,
  countOf,
  countStories,
  formatElapsed,
  STATE_ORDER,
  stateCounts,
  tokensOf,
} from "./board-words.ts";
import { drawLine, joinFitting, type Span } from "./spans.ts";
import { chooseLayout, progressBar, workerRows } from "./worker-rows.ts";

export interface Frame {
  readonly width: number;
  readonly height: number;
  readonly colour: boolean;
  readonly now: Date;
}

const MOST_NOTICES = 4;
const BLANK: Row = { rank: RANK.gap, spans: [] };

/** The board as lines: at most `height`, none wider than `width`. What matters most stays when there is little room. */
export function renderBoard(board: Board, { width, height, colour, now }: Frame): string[] {
  const workers = [...board.workers.values()].sort(
    (one, other) => STATE_ORDER.indexOf(one.state) - STATE_ORDER.indexOf(other.state),
  );
  const layout = chooseLayout(width, workers);
  const head: Row[] = [{ rank: RANK.header, spans: header(board, width, now) }, ...ending(board)];
  const blocks = workers.flatMap((worker) => [BLANK, ...workerRows(worker, layout, now)]);
  const foot = notices(board);
  const all = [...head, ...blocks, ...(foot.length === 0 ? [] : [BLANK]), ...foot];
  const { shown, hidden } = fold(withGaps(all, height), height);
  const rows = hidden.length === 0 ? shown : withFold(shown, hidden);
  return rows.map(({ spans }) => drawLine(spans, width, colour));
}

/** Either every gap or none. */
function withGaps(rows: readonly Row[], height: number): readonly Row[] {
  const isRoomy = rows.filter(({ rank }) => rank <= RANK.gap).length <= height;
  return isRoomy ? rows : rows.filter(({ rank }) => rank !== RANK.gap);
}

/** Workers that are left out are at least counted, on a row of their own. */
function fold(rows: readonly Row[], height: number) {
  const all = chooseRows(rows, height);
  return all.hidden.length === 0 || height < 2 ? { ...all, hidden: [] } : chooseRows(rows, height - 1);
}

function withFold(shown: readonly Row[], hidden: readonly BoardWorker[]): Row[] {
  const counts = stateCounts(hidden).map(([text]) => text);
  const row: Row = {
    rank: 0,
    spans: [
      [`and ${countOf(hidden.length, "more worker")}`, "dim"],
      [`: ${counts.join(", ")}`, "dim"],
    ],
  };
  const isFoot = ({ rank }: Row) => rank === RANK.notice || rank === RANK.moreNotices;
  const at = shown.findIndex(isFoot);
  const place = at < 0 ? shown.length : at;
  return [...shown.slice(0, place), row, ...shown.slice(place)];
}

function header(board: Board, width: number, now: Date): Span[] {
  const workers = [...board.workers.values()];
  const stories = countStories(workers.flatMap((worker) => worker.stories));
  const ended = stories.completed + stories.failed + stories.skipped;
  const tokens = workers.reduce((sum, worker) => sum + tokensOf(worker), 0);
  const turns = workers.reduce((sum, worker) => sum + worker.usage.turns, 0);
  const parts: Span[][] = [
    [["swarm", "bold"], ` ${board.swarmId?.slice(0, 8) ?? ""}`],
    ...(width < 45 ? [] : [progressBar(stories, width < 70 ? 6 : width < 100 ? 10 : 20)]),
    [`${ended}/${stories.total} stories`],
    [formatElapsed(board.startedAt, board.endedAt ?? now)],
    ...stateCounts(workers).map((span): Span[] => [span]),
    ...(tokens === 0 ? [] : [[countOf(tokens, "token")]]),
    ...(turns === 0 ? [] : [[countOf(turns, "turn")]]),
  ];
  return joinFitting(parts, width);
}

function ending({ endedAt, isInterrupted }: Board): Row[] {
  if (endedAt === undefined || !isInterrupted) return [];
  return [{ rank: RANK.header, spans: [[`interrupted; ${AFTER_INTERRUPT}`, "yellow"]] }];
}

/** Files that will have to be brought together, and warnings; the newest warning last. */
function notices({ overlaps, warnings }: Board): Row[] {
  const files = overlaps.slice(0, MOST_NOTICES).map(({ path, workers }, index): Row => {
    const label = index > 0 ? "" : overlaps.length === 1 ? "overlap" : `${overlaps.length} overlaps`;
    const names = workers.map(shortWorkerName).join(", ");
    return {
      rank: index === 0 ? RANK.notice : RANK.moreNotices,
      spans: [[label.padEnd(11), "yellow"], " ", path, "  ", [names, "dim"]],
    };
  });
  const said = warnings.slice(-MOST_NOTICES);
  const warned = said.map((text, index): Row => {
    const rank = index === said.length - 1 ? RANK.notice : RANK.moreNotices;
    return { rank, spans: [["warning".padEnd(11), "yellow"], " ", text] };
  });
  return [...files, ...warned];
}
