import { LineSplitter } from "./line-splitter.ts";
import { isFinal, type WorkerMessage } from "./message.ts";
import { messageError } from "./message-error.ts";
import { parseMessage } from "./parse-message.ts";

/** A worker's messages as their bytes come, each with the offset behind it: from there another process reads on. */
export class MessageFeed {
  readonly #lines = new LineSplitter();
  #offset: number;
  #isOver: boolean;

  /** `isOver`: its last message was read before. */
  constructor(offset: number, isOver: boolean) {
    this.#offset = offset;
    this.#isOver = isOver;
  }

  *push(data: Uint8Array): Generator<{ message: WorkerMessage; offset: number }> {
    const start = this.#offset;
    this.#offset += data.length;
    for (const { line, end } of this.#lines.push(data)) {
      if (this.#isOver) throw messageError("(order)", "comes behind the last message");
      const message = parseMessage(line);
      if (message.type === "task-request")
        throw messageError("type", "is task-request, which only the host sends");
      this.#isOver = isFinal(message);
      yield { message, offset: start + end };
    }
  }

  end(): void {
    this.#lines.end();
    if (!this.#isOver)
      throw messageError("(order)", "ends without a completion or error", "ACP_CONNECTION_LOST");
  }
}
