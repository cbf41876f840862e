import type { RawData, WebSocket } from "ws";
import type { ServerBed } from "./server-bed.ts";

type Stream = "stdout" | "stderr";

/**
 * A viewer of one command over WebSocket that comes back to where it was whenever the connection breaks, and fails on a
 * byte that is missing or comes twice.
 */
export class ExecViewer {
  readonly bytes = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  readonly next: Record<Stream, number>;
  /** How many times it had to connect. */
  connections = 0;
  wrong: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: the last message is whatever the test expects it to be
  end: any;
  readonly #server: ServerBed;
  readonly #path: string;
  #socket: WebSocket | undefined;
  #closed = false;

  constructor(server: ServerBed, containerId: string, execId: string, from = { stdout: 0, stderr: 0 }) {
    this.#server = server;
    this.#path = `/api/sandbox/${containerId}/exec/${execId}/ws`;
    this.next = { ...from };
  }

  get text(): string {
    return Buffer.concat(this.bytes.stdout).toString();
  }

  /** Resolves with the command's end. Connects again for as long as there is none. */
  async watch(): Promise<void> {
    while (this.end === undefined && this.wrong === undefined && !this.#closed) {
      const query = `?stdoutOffset=${this.next.stdout}&stderrOffset=${this.next.stderr}`;
      const socket = this.#server.socket(this.#path + query);
      this.#socket = socket;
      socket.on("error", () => undefined);
      socket.on("open", () => {
        this.connections += 1;
      });
      socket.on("message", (data) => this.#take(data));
      // An error is followed by the end of the connection, which is all that matters here.
      await new Promise((resolve) => socket.on("close", resolve));
      // The server may be down: a moment later it may be back.
      if (this.end === undefined) await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  send(message: object | Buffer): void {
    this.#socket?.send(Buffer.isBuffer(message) ? message : JSON.stringify(message));
  }

  close(): void {
    this.#closed = true;
    this.#socket?.terminate();
  }

  #take(data: RawData): void {
    const message = JSON.parse(String(data));
    if (message.type === "end") this.end = message;
    if (message.type === "error") this.wrong = JSON.stringify(message);
    if (message.type !== "output") return;
    const stream = message.stream as Stream;
    if (message.offset !== this.next[stream]) {
      this.wrong = `${stream} goes on at ${message.offset}, not at ${this.next[stream]}`;
      this.close();
      return;
    }
    const bytes = Buffer.from(message.data, "base64");
    this.bytes[stream].push(bytes);
    this.next[stream] += bytes.length;
  }
}
