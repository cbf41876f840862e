import type { Socket } from "node:net";
import type { Writable } from "node:stream";
import { orAborted } from "../core/supervisor/time-limit.ts";

const HELD_BYTES = 1024 * 1024;

/** What goes to one client. A client that does not read holds up who writes, not this process's memory. */
export class Outflow {
  readonly #socket: Socket;
  readonly #signal: AbortSignal;

  constructor(socket: Socket, signal: AbortSignal) {
    this.#socket = socket;
    this.#signal = signal;
  }

  /** Resolves when the bytes fit into the client's window and the connection's buffer. */
  async write(stream: Writable, data: Uint8Array, signal: AbortSignal): Promise<void> {
    // A channel that was closed meanwhile never calls back, so its end is waited for as well.
    await orAborted(new Promise<void>((resolve) => stream.write(data, () => resolve())), signal);
    await this.ready();
  }

  /** Resolves when the connection takes more. */
  async ready(): Promise<void> {
    while (this.#socket.writableLength > HELD_BYTES) {
      await orAborted(new Promise<void>((resolve) => this.#socket.once("drain", resolve)), this.#signal);
    }
  }
}
