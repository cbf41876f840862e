import { FRAMED_BODY, writeFramedBody } from "../framed-body.ts";
import type { OutputStream, RunRecord, RunSummary } from "../protocol/index.ts";
import type {
  RunFile,
  RunLogs,
  RunOptions,
  RunOutput,
  RunPosition,
  Runs,
  StartRun,
  UpRequest,
} from "../runs.ts";
import { bodyOf, chunksOf, fromBase64 } from "./bytes.ts";
import { followEvents } from "./follow-events.ts";
import type { Transport } from "./transport.ts";

const PATH = "/api/runs";
/** Stands for the newest sandbox that was made for runs; no sandbox can be called so. */
const NEWEST = "@newest";
const one = (sandbox: string | undefined, verb = ""): string =>
  `${PATH}/${encodeURIComponent(sandbox ?? NEWEST)}${verb}`;
/** Each request for the end waits at the server this long, then asks again. */
const WAIT_MS = 30_000;

export class HttpRuns implements Runs {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async up(request: UpRequest, options: RunOptions = {}): Promise<RunRecord> {
    const { inputs, tasks = [], start, ...rest } = request;
    const started = start?.task === undefined ? [] : [start.task];
    const body = {
      ...rest,
      inputs: inputs.map(named),
      tasks: tasks.map(named),
      ...(start === undefined ? {} : { start: { ...start, task: start.task && named(start.task) } }),
    };
    return this.#send(PATH, body, [...inputs, ...tasks, ...started], options);
  }

  async start(request: StartRun, options: RunOptions = {}): Promise<RunRecord> {
    const { task, ...rest } = request;
    const body = { ...rest, task: task === undefined ? undefined : named(task) };
    return this.#send(`${PATH}/start`, body, task === undefined ? [] : [task], options);
  }

  async get(sandbox?: string): Promise<RunRecord> {
    return this.#transport.json(one(sandbox), { repeatable: true });
  }

  async wait(sandbox?: string, signal?: AbortSignal): Promise<RunSummary> {
    // The newest may be another one by the time of the second question.
    const id = sandbox ?? (await this.get()).id;
    for (;;) {
      const summary = await this.#summary(id, WAIT_MS, signal);
      if (summary !== undefined) return summary;
    }
  }

  async summary(sandbox?: string): Promise<RunSummary | undefined> {
    return this.#summary(sandbox, 0);
  }

  /** Goes on by itself, from the last byte received, when the connection or the server is lost for a while. */
  async *logs(request: RunLogs = {}, signal?: AbortSignal): AsyncGenerator<RunOutput> {
    const { id, startedAt } = await this.get(request.sandbox);
    let at: RunPosition | undefined = request.from;
    const where = () => ({
      follow: request.follow === true,
      ...(at === undefined ? {} : { ...at, startedAt: startedAt ?? undefined }),
    });
    for await (const { event, data } of followEvents(this.#transport, one(id, "/logs"), where, signal)) {
      if (event !== "output") continue;
      const { step, ...chunk } = data as LogEvent;
      const bytes = fromBase64(chunk.data);
      at = positionAfter(at, step, chunk.stream, chunk.offset + bytes.length);
      yield { ...chunk, data: bytes, ...(step === undefined ? {} : { step }) };
    }
  }

  async *output(path: string, sandbox?: string, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const call = { query: { path }, repeatable: true, signal };
    const response = await this.#transport.send(one(sandbox, "/outputs"), call);
    yield* chunksOf(response, this.#transport.url, signal);
  }

  async cancel(sandbox?: string): Promise<void> {
    await this.#transport.json(one(sandbox, "/cancel"), { method: "POST", json: {}, slow: true });
  }

  async #send(
    path: string,
    request: object,
    files: readonly RunFile[],
    { signal, onProgress }: RunOptions,
  ): Promise<RunRecord> {
    onProgress?.(`Waiting for ${this.#transport.url}`);
    return this.#transport.json(path, {
      method: "POST",
      headers: { "content-type": FRAMED_BODY },
      body: await bodyOf(writeFramedBody(request, files)),
      slow: true,
      signal,
    });
  }

  async #summary(
    sandbox: string | undefined,
    wait: number,
    signal?: AbortSignal,
  ): Promise<RunSummary | undefined> {
    const call = { query: { wait }, repeatable: true, waitMs: wait, signal };
    const reply = await this.#transport.json<{ summary: RunSummary | null }>(one(sandbox, "/summary"), call);
    return reply.summary ?? undefined;
  }
}

interface LogEvent {
  step?: string;
  stream: OutputStream;
  offset: number;
  data: string;
}

function named({ path, executable }: RunFile): { path: string; executable?: boolean | undefined } {
  return { path, executable };
}

function positionAfter(
  before: RunPosition | undefined,
  step: string | undefined,
  stream: OutputStream,
  offset: number,
): RunPosition {
  const same = before !== undefined && before.step === step;
  const at = same ? before : { stdoutOffset: 0, stderrOffset: 0, ...(step === undefined ? {} : { step }) };
  return { ...at, [stream === "stdout" ? "stdoutOffset" : "stderrOffset"]: offset };
}
