import type { RawData, WebSocket } from "ws";

/** What a client has sent and its command has not taken; above this nothing more is read from the client. */
const WINDOW_BYTES = 256 * 1024;
/** What a waiting message costs besides its bytes: thousands of empty ones are no less of a burden. */
const MESSAGE_BYTES = 256;
/** What a client sent before it left is still given to a command that reads it. */
const LINGER_MS = 1_000;

export interface SocketInputOptions {
  apply: (bytes: Buffer, isBinary: boolean, signal: AbortSignal) => Promise<void>;
  onFailure: (thrown: unknown) => Promise<void>;
}

/** Applies a client's messages one after the other, so that bytes keep their order, and holds no more than a window of them. */
export function takeInput(socket: WebSocket, options: SocketInputOptions): void {
  const left = new AbortController();
  const queue: { bytes: Buffer; isBinary: boolean }[] = [];
  let heldBytes = 0;
  let isAtWork = false;

  const work = async (): Promise<void> => {
    isAtWork = true;
    for (let next = queue[0]; next !== undefined; next = queue[0]) {
      await options.apply(next.bytes, next.isBinary, left.signal).catch(options.onFailure);
      if (left.signal.aborted) break;
      queue.shift();
      heldBytes -= next.bytes.length + MESSAGE_BYTES;
      if (heldBytes < WINDOW_BYTES && socket.isPaused) socket.resume();
    }
    isAtWork = false;
  };

  socket.on("message", (data, isBinary) => {
    if (left.signal.aborted) return;
    const bytes = toBuffer(data);
    queue.push({ bytes, isBinary });
    heldBytes += bytes.length + MESSAGE_BYTES;
    if (heldBytes >= WINDOW_BYTES) socket.pause();
    if (!isAtWork) void work();
  });
  socket.on("close", () => {
    setTimeout(() => {
      left.abort();
      queue.length = 0;
    }, LINGER_MS).unref();
  });
}

function toBuffer(data: RawData): Buffer {
  if (Array.isArray(data)) return Buffer.concat(data);
  return Buffer.isBuffer(data) ? data : Buffer.from(data);
}
