import type { ExecPage, Execs } from "../aido.ts";
import type {
  ErrorBody,
  ExecInfo,
  ExecRequest,
  OutputChunk,
  OutputRange,
  OutputStream,
  TerminalSize,
} from "../protocol/index.ts";
import { fromBase64 } from "./bytes.ts";
import { followEvents } from "./follow-events.ts";
import { type ExecStateReply, toExecInfo } from "./from-wire.ts";
import { lostServer } from "./lost-server.ts";
import { randomHex } from "./random-hex.ts";
import { errorFromBody } from "./server-error.ts";
import { serverEvents } from "./server-events.ts";
import type { Transport } from "./transport.ts";

const base = (sandbox: string): string => `/api/sandbox/${encodeURIComponent(sandbox)}/exec`;
const one = (sandbox: string, execId: string, verb = ""): string =>
  `${base(sandbox)}/${encodeURIComponent(execId)}${verb}`;
/** Each request for the end waits at the server this long, then asks again. */
const WAIT_MS = 30_000;

export class HttpExecs implements Execs {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async start(sandbox: string, request: ExecRequest, signal?: AbortSignal): Promise<ExecInfo> {
    const body = {
      containerId: sandbox,
      command: request.argv,
      // An id of our own makes the request safe to send again; it is long, so that no other exec has it.
      id: request.id ?? `exec_${randomHex(8)}`,
      background: true,
      timeout: request.timeoutMs,
      killGrace: request.killGraceMs,
      env: request.env,
      cwd: request.cwd,
      user: request.user,
      stdin: request.stdin,
      pty: request.pty,
      gitTracking: request.history,
      autoResume: request.autoResume,
    };
    const reply = await this.#transport.json<ExecStateReply>("/api/sandbox/exec", {
      method: "POST",
      json: body,
      repeatable: true,
      signal,
    });
    return toExecInfo(reply);
  }

  async get(sandbox: string, execId: string): Promise<ExecInfo> {
    return this.#state(sandbox, execId, 0);
  }

  async list(sandbox: string, { limit, before }: ExecPage = {}): Promise<readonly ExecInfo[]> {
    const reply = await this.#transport.json<{ execs: ExecStateReply[] }>(base(sandbox), {
      query: { limit, before },
      repeatable: true,
    });
    return reply.execs.map(toExecInfo);
  }

  async wait(sandbox: string, execId: string, signal?: AbortSignal): Promise<ExecInfo> {
    for (;;) {
      const info = await this.#state(sandbox, execId, WAIT_MS, signal);
      if (info.status !== "running") return info;
    }
  }

  /** Goes on by itself, from the last byte received, when the connection or the server is lost for a while. */
  async *output(
    sandbox: string,
    execId: string,
    range: OutputRange = {},
    signal?: AbortSignal,
  ): AsyncGenerator<OutputChunk> {
    const next = { stdout: range.stdoutOffset ?? 0, stderr: range.stderrOffset ?? 0 };
    if (range.follow !== true) {
      yield* this.#recorded(sandbox, execId, next, signal);
      return;
    }
    const where = () => ({ stdoutOffset: next.stdout, stderrOffset: next.stderr });
    const path = one(sandbox, execId, "/stream");
    for await (const { event, data } of followEvents(this.#transport, path, where, signal)) {
      if (event !== "output") continue;
      const chunk = data as { stream: OutputStream; offset: number; data: string };
      const bytes = fromBase64(chunk.data);
      next[chunk.stream] = chunk.offset + bytes.length;
      yield { stream: chunk.stream, offset: chunk.offset, data: bytes };
    }
  }

  /** Asks for events: a command that does not read yet is no reason to give up. */
  async writeStdin(sandbox: string, execId: string, data: Uint8Array, signal?: AbortSignal): Promise<void> {
    const response = await this.#transport.send(one(sandbox, execId, "/stdin"), {
      method: "POST",
      headers: { accept: "text/event-stream" },
      body: Uint8Array.from(data),
      signal,
    });
    const { url } = this.#transport;
    // A server that knows no events here answers once the bytes are taken.
    if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true) {
      await response.body?.cancel();
      return;
    }
    for await (const received of serverEvents(response, url, signal)) {
      if (received.event === "error") throw errorFromBody(received.data as ErrorBody, 500);
      if (received.event === "end") return;
    }
    signal?.throwIfAborted();
    throw lostServer(url, undefined);
  }

  async closeStdin(sandbox: string, execId: string, signal?: AbortSignal): Promise<void> {
    const query = { close: true };
    await this.#transport.json(one(sandbox, execId, "/stdin"), { method: "POST", query, signal });
  }

  async resize(sandbox: string, execId: string, size: TerminalSize): Promise<void> {
    await this.#transport.json(one(sandbox, execId, "/resize"), { method: "POST", json: size });
  }

  async kill(
    sandbox: string,
    execId: string,
    options: { signal?: string; graceMs?: number } = {},
  ): Promise<void> {
    await this.#transport.json(one(sandbox, execId, "/signal"), { method: "POST", json: options });
  }

  async #state(sandbox: string, execId: string, wait: number, signal?: AbortSignal): Promise<ExecInfo> {
    // Offsets beyond any output: only the state is wanted.
    const query = { wait, stdoutOffset: Number.MAX_SAFE_INTEGER, stderrOffset: Number.MAX_SAFE_INTEGER };
    const call = { query, repeatable: true, waitMs: wait, signal };
    return toExecInfo(await this.#transport.json<ExecStateReply>(one(sandbox, execId), call));
  }

  async *#recorded(
    sandbox: string,
    execId: string,
    next: Record<OutputStream, number>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<OutputChunk> {
    // What is there when the first answer comes; a command that writes on is not followed.
    let sizes: Record<OutputStream, number> | undefined;
    for (;;) {
      const query = { stdoutOffset: next.stdout, stderrOffset: next.stderr, encoding: "base64" };
      const reply = await this.#transport.json<RecordedReply>(one(sandbox, execId), {
        query,
        repeatable: true,
        signal,
      });
      sizes ??= { stdout: reply.stdoutBytes, stderr: reply.stderrBytes };
      let length = 0;
      for (const stream of ["stdout", "stderr"] as const) {
        const data = fromBase64(reply[stream]);
        if (data.length > 0) yield { stream, offset: next[stream], data };
        next[stream] += data.length;
        length += data.length;
      }
      if (length === 0 || (next.stdout >= sizes.stdout && next.stderr >= sizes.stderr)) return;
    }
  }
}

interface RecordedReply {
  stdout: string;
  stderr: string;
  stdoutBytes: number;
  stderrBytes: number;
}
