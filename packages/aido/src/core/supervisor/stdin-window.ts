import { AidoError } from "@aido/sdk/protocol";
import { protocolError } from "./frames.ts";
import { STDIN_WINDOW_BYTES } from "./protocol.ts";
import { WaitingLine } from "./waiting-line.ts";

const SLICE_BYTES = 131_072;

export interface StdinSender {
  stdin(offset: number, data: Uint8Array): void;
  stdinClose(offset: number): void;
}

/**
 * Standard input of one exec as the host sees it. Keeps what is not acknowledged, at most one window, so that it can
 * be sent again on a new connection. An exec that another process started has an unknown offset; it is asked for.
 */
export class StdinWindow {
  readonly #send: StdinSender;
  readonly #unacked: { offset: number; data: Uint8Array }[] = [];
  /** Of what was acknowledged, which nobody looks at any more; no more than a window of it. */
  readonly #spare: Uint8Array[] = [];
  #sent: number | undefined;
  #acked = 0;
  #closeAt: number | undefined;
  #isGone = false;
  #isBusy = false;
  readonly #turns = new WaitingLine();
  readonly #changes = new WaitingLine();

  constructor(send: StdinSender, isNew: boolean) {
    this.#send = send;
    if (isNew) this.#sent = 0;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** Resolves when all bytes are taken; writes of several callers keep their order. */
  write(data: Uint8Array, signal?: AbortSignal): Promise<void> {
    return this.#inTurn(async () => this.#taken(await this.#pass(data, signal), signal), signal);
  }

  /** Resolves when all bytes are on their way, for who has more: at most one window of them is not taken yet. */
  pass(data: Uint8Array, signal?: AbortSignal): Promise<void> {
    return this.#inTurn(async () => void (await this.#pass(data, signal)), signal);
  }

  /** After all that was written before. Resolves when the command's input has ended. */
  close(signal?: AbortSignal): Promise<void> {
    return this.#inTurn(async () => {
      this.#closeAt = await this.#position(signal);
      this.#send.stdinClose(this.#closeAt);
      while (!this.#isGone) await this.#changes.wait(signal);
    }, signal);
  }

  /**
   * All there is of the input, at most one window, then its end. Whoever comes second gives nothing: one frame is taken
   * as a whole, so that an input of which anything was taken was given. Resolves also when nobody reads it.
   */
  give(data: Uint8Array, signal?: AbortSignal): Promise<void> {
    return this.#inTurn(() => this.#give(data, signal), signal);
  }

  onAck(offset: number, isGone: boolean): void {
    if (this.#sent !== undefined && offset > this.#sent)
      throw protocolError("it took input that was not sent");
    this.#acked = Math.max(this.#acked, offset);
    this.#sent ??= offset;
    if (isGone) this.#isGone = true;
    for (let first = this.#unacked[0]; first !== undefined; first = this.#unacked[0]) {
      if (first.offset + first.data.byteLength > this.#acked) break;
      this.#unacked.shift();
      if (first.data.buffer.byteLength === SLICE_BYTES) this.#spare.push(new Uint8Array(first.data.buffer));
    }
    this.#changes.wakeAll();
  }

  /** The exec has ended: nobody reads any more. */
  end(): void {
    this.#isGone = true;
    this.#unacked.length = 0;
    this.#changes.wakeAll();
  }

  /** On a new connection: whatever the supervisor already has, it ignores. */
  resend(): void {
    for (const { offset, data } of this.#unacked) this.#send.stdin(offset, data);
    if (this.#closeAt !== undefined) this.#send.stdinClose(this.#closeAt);
    else if (this.#sent === undefined && this.#changes.length > 0) this.#send.stdin(0, new Uint8Array());
  }

  async #give(data: Uint8Array, signal?: AbortSignal): Promise<void> {
    if (data.byteLength > STDIN_WINDOW_BYTES) {
      throw new AidoError("VALIDATION_ERROR", `The input has over ${STDIN_WINDOW_BYTES} bytes`);
    }
    if (this.#sent === undefined && !this.#isGone) this.#send.stdin(0, new Uint8Array());
    while (this.#sent === undefined && !this.#isGone) await this.#changes.wait(signal);
    if (this.#isGone) return;
    if (this.#sent === 0) {
      this.#unacked.push({ offset: 0, data: data.slice() });
      this.#sent = data.byteLength;
      this.#send.stdin(0, data);
    }
    this.#closeAt = this.#sent ?? 0;
    this.#send.stdinClose(this.#closeAt);
    while (!this.#isGone) await this.#changes.wait(signal);
  }

  /** Where the last byte ends. */
  async #pass(data: Uint8Array, signal?: AbortSignal): Promise<number> {
    if (this.#closeAt !== undefined) {
      throw new AidoError("EXECUTION_CONFLICT", "The command's standard input is already closed");
    }
    let sent = await this.#position(signal);
    for (let at = 0; at < data.byteLength; ) {
      const room = STDIN_WINDOW_BYTES - (sent - this.#acked);
      if (room <= 0) {
        await this.#changes.wait(signal);
        this.#refuseWhenGone();
        continue;
      }
      // A copy: the caller may reuse its buffer while this one waits to be sent again.
      const slice = this.#copy(data.subarray(at, at + Math.min(room, SLICE_BYTES)));
      this.#unacked.push({ offset: sent, data: slice });
      this.#send.stdin(sent, slice);
      at += slice.byteLength;
      sent += slice.byteLength;
      this.#sent = sent;
    }
    return sent;
  }

  async #taken(sent: number, signal?: AbortSignal): Promise<void> {
    while (this.#acked < sent) {
      await this.#changes.wait(signal);
      if (this.#acked < sent) this.#refuseWhenGone();
    }
  }

  /** In memory that was used before, where there is much: new memory for all of it costs more than the copy. */
  #copy(data: Uint8Array): Uint8Array {
    if (data.byteLength < SLICE_BYTES / 2) return Uint8Array.from(data);
    const copy = (this.#spare.pop() ?? new Uint8Array(SLICE_BYTES)).subarray(0, data.byteLength);
    copy.set(data);
    return copy;
  }

  async #position(signal?: AbortSignal): Promise<number> {
    this.#refuseWhenGone();
    if (this.#sent === undefined) this.#send.stdin(0, new Uint8Array());
    while (this.#sent === undefined) {
      await this.#changes.wait(signal);
      this.#refuseWhenGone();
    }
    return this.#sent;
  }

  #refuseWhenGone(): void {
    if (!this.#isGone) return;
    throw new AidoError("EXECUTION_CONFLICT", "The command no longer reads its standard input");
  }

  /** Whoever gives up while others are at it lets go of its bytes. */
  async #inTurn(work: () => Promise<void>, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (this.#isBusy) await this.#turns.wait(signal);
    this.#isBusy = true;
    try {
      await work();
    } finally {
      // The turn is handed over, not given back: nobody may come in between.
      this.#isBusy = this.#turns.wakeOne();
    }
  }
}
