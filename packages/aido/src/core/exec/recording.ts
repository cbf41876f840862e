import { join } from "node:path";
import type { AidoError, OutputStream } from "@aido/sdk/protocol";
import type { EndFrame } from "../supervisor/frames.ts";
import type { ExecListener } from "../supervisor/live-exec.ts";
import type { Supervisor } from "../supervisor/supervisor.ts";
import { type EndOutcome, LOST, toEndOutcome } from "./exec-status.ts";
import { OutputFile } from "./output-file.ts";
import { OutputOrder } from "./output-order.ts";

const ACK_EVERY_BYTES = 65_536;

export interface RecordingOptions {
  execId: string;
  directory: string;
  supervisor: Supervisor;
  from: { stdout: number; stderr: number };
  /** All output is in its files. Called once, unless another process takes over. */
  onEnd: (outcome: EndOutcome, end: EndFrame | undefined) => void;
  onDetached: () => void;
  /** The host cannot write; the exec must not go on as if it could. */
  onWriteError: (error: Error) => void;
}

/** Follows one exec, writes what it says to its files, and acknowledges what is written. */
export class Recording implements ExecListener {
  readonly stdout: OutputFile;
  readonly stderr: OutputFile;
  readonly #options: RecordingOptions;
  readonly #acked: Record<OutputStream, number>;
  readonly #received: Record<OutputStream, number>;
  readonly #order: OutputOrder;
  readonly #waiting = new Set<() => void>();
  #hasFailed = false;

  constructor(options: RecordingOptions) {
    this.#options = options;
    this.#acked = { ...options.from };
    this.#received = { ...options.from };
    this.#order = new OutputOrder(options.directory, this.#received);
    const file = (stream: OutputStream) =>
      new OutputFile(
        join(options.directory, stream),
        options.from[stream],
        () => this.#onWritten(stream),
        (error) => this.#onError(error),
      );
    this.stdout = file("stdout");
    this.stderr = file("stderr");
  }

  onOutput(stream: OutputStream, offset: number, data: Buffer): void {
    this.#order.hear(stream);
    this.#received[stream] = offset + data.length;
    this[stream].push(data);
    if (this.#hasFailed) this.#discard();
  }

  onEnd(end: EndFrame): void {
    this.#afterWrites(() => {
      this.#ack("stdout");
      this.#ack("stderr");
      this.#options.supervisor.release(this.#options.execId);
      this.#options.onEnd(this.#hasFailed ? LOST : toEndOutcome(end), end);
    });
  }

  onDetached(): void {
    this.#afterWrites(() => this.#options.onDetached());
  }

  onLost(_error: AidoError): void {
    this.#afterWrites(() => this.#options.onEnd(LOST, undefined));
  }

  /** Resolves at the next written byte or `wake`. */
  change(): Promise<void> {
    return new Promise((resolve) => this.#waiting.add(resolve));
  }

  wake(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const resolve of waiting) resolve();
  }

  async flush(): Promise<void> {
    await Promise.all([this.stdout.flushed(), this.stderr.flushed()]);
  }

  close(): void {
    this.#order.close();
    this.stdout.close();
    this.stderr.close();
  }

  #afterWrites(then: () => void): void {
    if (this.stdout.flushed() === undefined && this.stderr.flushed() === undefined) then();
    else void this.flush().then(then);
  }

  #onWritten(stream: OutputStream): void {
    if (this[stream].written - this.#acked[stream] >= ACK_EVERY_BYTES) this.#ack(stream);
    if (this.#waiting.size > 0) this.wake();
  }

  #ack(stream: OutputStream): void {
    const { written } = this[stream];
    if (written <= this.#acked[stream]) return;
    this.#acked[stream] = written;
    this.#options.supervisor.ack(this.#options.execId, stream, written);
  }

  #onError(error: Error): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#options.onWriteError(error);
    this.#discard();
  }

  /** What cannot be kept is let go: a command whose output nobody takes could not come to its end. */
  #discard(): void {
    for (const stream of ["stdout", "stderr"] as const) {
      if (this.#received[stream] <= this.#acked[stream]) continue;
      this.#acked[stream] = this.#received[stream];
      this.#options.supervisor.ack(this.#options.execId, stream, this.#received[stream]);
    }
  }
}
