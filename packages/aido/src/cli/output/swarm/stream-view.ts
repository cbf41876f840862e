import type { SwarmEvent } from "../../../core/swarm/swarm-event.ts";
import type { ByteSink } from "../byte-sink.ts";
import { type Board, EMPTY_BOARD, nextBoard } from "./board.ts";
import { LineQueue } from "./line-queue.ts";
import type { SwarmView } from "./swarm-view.ts";

export interface StreamFormat {
  readonly lines: (before: Board, after: Board, event: SwarmEvent) => readonly string[];
  readonly omitted: (count: number) => string;
}

const CHATTER: ReadonlySet<SwarmEvent["type"]> = new Set(["progress", "log", "usage"]);

/** One line after the other. */
export class StreamView implements SwarmView {
  readonly #format: StreamFormat;
  readonly #queue: LineQueue;
  #board = EMPTY_BOARD;

  constructor(sink: ByteSink, format: StreamFormat) {
    this.#format = format;
    this.#queue = new LineQueue(sink, format.omitted);
  }

  readonly show = (event: SwarmEvent): void => {
    const before = this.#board;
    this.#board = nextBoard(before, event);
    for (const line of this.#format.lines(before, this.#board, event)) {
      this.#queue.add(line, CHATTER.has(event.type));
    }
  };

  close(): Promise<void> {
    return this.#queue.close();
  }
}
