import type { AidoError, OutputStream } from "@aido/sdk/protocol";
import { type EndFrame, type HostFrame, type OutputFrame, protocolError } from "./frames.ts";
import { RING_BYTES, STREAM } from "./protocol.ts";
import { StdinWindow } from "./stdin-window.ts";

/** Hears of one exec. Called as frames arrive, so it must neither wait nor throw. */
export interface ExecListener {
  /** In order and without gaps per stream; `data` is a view of the received chunk. Acknowledge what is safe. */
  onOutput(stream: OutputStream, offset: number, data: Buffer): void;
  /** Once, after all output. */
  onEnd(end: EndFrame): void;
  /** Another connection reads it now. */
  onDetached(): void;
  /** It cannot be followed any more: OUTPUT_LOST at an attach, otherwise the container or the exec is gone. */
  onLost(error: AidoError): void;
}

const NAMES: Readonly<Record<number, OutputStream>> = {
  [STREAM.stdout]: "stdout",
  [STREAM.stderr]: "stderr",
};

/** Where this process stands in one exec's streams. Outlives connections. */
export class LiveExec {
  readonly id: string;
  readonly listener: ExecListener;
  readonly stdin: StdinWindow;
  /** False until STARTED has come: an exec that may never have reached the supervisor is sent again, not attached. */
  isStarted: boolean;
  /** Between ATTACH and the answer that shows it was heard; a refusal then belongs to whoever asked. */
  isAttaching = false;
  refusal: AidoError | undefined;
  #isEnded = false;
  readonly #next: Record<OutputStream, number>;
  readonly #acked: Record<OutputStream, number>;

  constructor(
    id: string,
    listener: ExecListener,
    send: (frame: HostFrame) => void,
    from: { stdout: number; stderr: number } | undefined,
  ) {
    this.id = id;
    this.listener = listener;
    this.isStarted = from !== undefined;
    this.#next = { stdout: from?.stdout ?? 0, stderr: from?.stderr ?? 0 };
    this.#acked = { ...this.#next };
    this.stdin = new StdinWindow(
      {
        stdin: (offset, data) => send({ type: "stdin", id, offset, data }),
        stdinClose: (offset) => send({ type: "stdinClose", id, offset }),
      },
      from === undefined,
    );
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  attachFrame(): HostFrame {
    return { type: "attach", id: this.id, stdoutOffset: this.#next.stdout, stderrOffset: this.#next.stderr };
  }

  /** Frees what lies before the place we read on from: it is recorded. */
  offsetFrames(): HostFrame[] {
    const frame = (stream: OutputStream): HostFrame => ({
      type: "ack",
      id: this.id,
      stream: STREAM[stream],
      offset: this.#acked[stream],
    });
    return (["stdout", "stderr"] as const).filter((stream) => this.#acked[stream] > 0).map(frame);
  }

  onOutput(frame: OutputFrame): void {
    const stream = NAMES[frame.stream];
    if (stream === undefined) throw protocolError(`stream ${frame.stream}`);
    const next = this.#next[stream];
    if (frame.offset > next) throw protocolError("output has a gap");
    const data = frame.offset === next ? frame.data : frame.data.subarray(next - frame.offset);
    if (data.length === 0) return;
    if (next + data.length - this.#acked[stream] > RING_BYTES) throw protocolError("output beyond its ring");
    this.#next[stream] = next + data.length;
    this.listener.onOutput(stream, next, data);
  }

  onEnd(end: EndFrame): void {
    if (this.#isEnded) return;
    if (end.stdoutTotal !== this.#next.stdout || end.stderrTotal !== this.#next.stderr) {
      throw protocolError("its totals do not match the output");
    }
    this.#isEnded = true;
    this.stdin.end();
    this.listener.onEnd(end);
  }

  ackFrame(stream: OutputStream, offset: number): HostFrame | undefined {
    if (offset <= this.#acked[stream]) return undefined;
    this.#acked[stream] = offset;
    return { type: "ack", id: this.id, stream: STREAM[stream], offset };
  }
}
