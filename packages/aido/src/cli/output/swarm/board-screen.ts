import type { SwarmEvent } from "../../../core/swarm/swarm-event.ts";
import type { CliContext } from "../../context.ts";
import { EMPTY_BOARD, nextBoard } from "./board.ts";
import { renderBoard } from "./render-board.ts";
import type { SwarmView } from "./swarm-view.ts";

/** Between two drawings. */
const FRAME_MS = 200;
/** Times that are shown go on without an event. */
const TICK_MS = 1000;
/** A terminal that is held (Ctrl-S) does not keep aido from ending. */
const CLOSE_MS = 2000;

// The second screen, so that nothing of the first is overwritten and a change of size leaves no debris; lines that a terminal
// takes for wider than they are must not wrap.
const ENTER = "\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[H\u001b[2J";
const LEAVE = "\u001b[H\u001b[J\u001b[?7h\u001b[?25h\u001b[?1049l";

/** A board that is drawn in place; what was shown last stays behind when it is closed. */
export class BoardScreen implements SwarmView {
  readonly #context: CliContext;
  readonly #colour: boolean;
  readonly #removers: (() => void)[] = [];
  readonly #drawing: Promise<void>;
  #board = EMPTY_BOARD;
  #last: string | undefined;
  #isStale = true;
  #isSuspended = false;
  #isClosing = false;
  #isGone = false;
  #isWakeable = false;
  #endPause: () => void = () => undefined;
  #closed: Promise<void> | undefined;

  constructor(context: CliContext, colour: boolean) {
    this.#context = context;
    this.#colour = colour;
    const { signals } = context;
    this.#removers.push(
      signals.atExit(LEAVE),
      signals.on("SIGWINCH", () => this.#redraw()),
      signals.on("SIGTSTP", () => void this.#suspend()),
      signals.on("SIGCONT", () => void this.#resume()),
    );
    this.#drawing = this.#drawUntilClosed();
  }

  readonly show = (event: SwarmEvent): void => {
    const before = this.#board;
    this.#board = nextBoard(before, event);
    if (this.#board !== before) this.#wake();
  };

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#isClosing = true;
    this.#endPause();
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CLOSE_MS);
    });
    await Promise.race([this.#drawing.then(() => this.#leaveLastFrame()), limit]);
    clearTimeout(timer);
    for (const remove of this.#removers) remove();
  }

  async #leaveLastFrame(): Promise<void> {
    const lines = this.#frame().map((line) => `${line}\n`);
    await this.#write(`${LEAVE}${lines.join("")}`);
  }

  /** One write at a time: a slow terminal gets fewer drawings, not a queue of old ones. */
  async #drawUntilClosed(): Promise<void> {
    await this.#write(ENTER);
    while (!this.#isClosing) {
      this.#isStale = false;
      await this.#draw();
      await this.#pause(FRAME_MS, false);
      if (!this.#isStale) await this.#pause(TICK_MS - FRAME_MS, true);
    }
  }

  /** Closing ends it, and what is new does when it is wakeable. */
  async #pause(ms: number, isWakeable: boolean): Promise<void> {
    if (this.#isClosing) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#isWakeable = isWakeable;
      this.#endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#isWakeable = false;
  }

  #wake(): void {
    this.#isStale = true;
    if (this.#isWakeable) this.#endPause();
  }

  async #draw(): Promise<void> {
    if (this.#isSuspended) return;
    const frame = this.#frame().join("\u001b[K\r\n");
    if (frame === this.#last) return;
    this.#last = frame;
    await this.#write(`\u001b[H${frame}\u001b[K\u001b[J`);
  }

  #frame(): string[] {
    const { rows, cols } = this.#context.signals.terminalSize();
    // The last column stays free: a terminal whose cursor waits behind it clears the wrong cell.
    return renderBoard(this.#board, {
      width: cols - 1,
      height: rows,
      colour: this.#colour,
      now: this.#context.now(),
    });
  }

  #redraw(): void {
    this.#last = undefined;
    this.#wake();
  }

  async #suspend(): Promise<void> {
    if (this.#isSuspended) return;
    this.#isSuspended = true;
    await this.#write(LEAVE);
    this.#context.signals.suspend();
  }

  async #resume(): Promise<void> {
    if (!this.#isSuspended) return;
    await this.#write(ENTER);
    this.#isSuspended = false;
    this.#redraw();
  }

  async #write(text: string): Promise<void> {
    if (this.#isGone) return;
    await this.#context.stdout.write(text).catch(() => {
      // The terminal is closed. The swarm goes on without anybody who looks.
      this.#isGone = true;
    });
  }
}
