import type { SwarmEvent } from "../../../core/swarm/swarm-event.ts";
import { printableJson } from "../printable.ts";
import { type Board, newOverlaps } from "./board.ts";

/** An event as JSON lines: the event itself, and one for each file that it shows to be changed by several workers. */
export function eventJson(before: Board, after: Board, event: SwarmEvent): string[] {
  const overlaps = newOverlaps(before, after).map((overlap) => ({
    type: "overlap",
    at: event.at,
    ...overlap,
  }));
  return [event, ...overlaps].map((value) => printableJson(value));
}
