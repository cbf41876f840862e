import type { ExecPage, Execs } from "@aido/sdk";
import type { ExecInfo, ExecRequest, OutputChunk, OutputRange, TerminalSize } from "@aido/sdk/protocol";
import type { ExecEndListener } from "../exec/exec-recorder.ts";
import type { SandboxResolver } from "../sandbox/sandbox-resolver.ts";
import type { ExecStore, SandboxRecord } from "../store/store.ts";
import { orAborted } from "../supervisor/time-limit.ts";
import type { HistoryService } from "./history-service.ts";
import { UnrecordedExecs } from "./unrecorded-execs.ts";

/** What core's own execs offer besides. */
export interface OwnExecs extends Execs {
  /** Without resolving the sandbox again. */
  startIn(
    record: SandboxRecord,
    request: ExecRequest,
    signal?: AbortSignal,
    options?: { isTracked?: boolean },
  ): Promise<ExecInfo>;
  running(record: SandboxRecord): Promise<unknown>;
  endedQuietly(sandboxId: string, execId: string): boolean;
  recover(sandboxId: string): Promise<void>;
  /** The exec that has the request's id; refused when it is another one. */
  repeated(sandbox: string, request: ExecRequest): Promise<ExecInfo | undefined>;
  onEnded(listener: ExecEndListener): void;
  close(): Promise<void>;
}

export interface TrackedExecsDeps {
  execs: OwnExecs;
  history: HistoryService;
  sandboxes: SandboxResolver;
  store: { readonly execs: ExecStore };
}

/** Execs whose changes to the workspace become history. Everything else is passed on as it is. */
export class TrackedExecs implements Execs {
  readonly #execs: OwnExecs;
  readonly #history: HistoryService;
  readonly #sandboxes: SandboxResolver;
  /** Tracked execs whose end has not been recorded, by sandbox and exec. */
  readonly #open = new Map<string, SandboxRecord>();
  readonly #recording = new Map<string, Promise<void>>();
  readonly #unrecorded: UnrecordedExecs;
  readonly #closing = new AbortController();

  constructor({ execs, history, sandboxes, store }: TrackedExecsDeps) {
    this.#execs = execs;
    this.#history = history;
    this.#sandboxes = sandboxes;
    this.#unrecorded = new UnrecordedExecs({
      store: store.execs,
      history,
      running: (record) => execs.running(record),
      isOwn: (sandboxId, execId) => {
        const key = keyOf(sandboxId, execId);
        return this.#open.has(key) || this.#recording.has(key);
      },
    });
  }

  async start(sandbox: string, request: ExecRequest, signal?: AbortSignal): Promise<ExecInfo> {
    const { autoResume } = request;
    const record = await this.#sandboxes.resolveRunning(sandbox, { autoResume, signal });
    if (!record.history) return this.#execs.startIn(record, request, signal);
    // What was changed before must not become part of this one's entry, nor this one's changes part of that.
    if (request.history === false) {
      await settle(this.caughtUp(record), signal);
      await settle(this.#history.settled(record.id), signal);
      return this.#execs.startIn(record, request, signal);
    }
    await settle(this.#history.ready(record), signal);
    await settle(this.caughtUp(record), signal);
    const info = await this.#startTracked(record, request, signal);
    // Asked for again with the same id, it may have been recorded long ago.
    if (info.status === "running" || !this.#history.isRecorded(record, info.id))
      this.#follow(record, info.id);
    return info;
  }

  /** After a restart: goes on with what runs, and begins to record what has ended since. */
  async recover(sandboxId: string): Promise<void> {
    const record = await this.#sandboxes.resolve(sandboxId);
    // Before what runs is taken over: only what nobody records yet is known to have ended.
    // What cannot be told now is looked for again before the next exec.
    const left = record.history ? await this.#unrecorded.take(record).catch(() => undefined) : undefined;
    await this.#execs.recover(sandboxId);
    for (const { id } of left?.running ?? []) this.#follow(record, id);
  }

  /** Resolves when what former processes left is recorded, as far as it has ended; undefined when there is nothing. */
  caughtUp(record: SandboxRecord): Promise<void> | undefined {
    return this.#unrecorded.caughtUp(record);
  }

  /** The entry may still be on its way: whoever changes or reads the workspace's history next waits for it. */
  async wait(sandbox: string, execId: string, signal?: AbortSignal): Promise<ExecInfo> {
    const info = await this.#execs.wait(sandbox, execId, signal);
    void this.#ended(keyOf(info.sandboxId, execId), execId);
    return info;
  }

  onEnded(listener: ExecEndListener): void {
    this.#execs.onEnded(listener);
  }

  repeated(sandbox: string, request: ExecRequest): Promise<ExecInfo | undefined> {
    return this.#execs.repeated(sandbox, request);
  }

  get(sandbox: string, execId: string): Promise<ExecInfo> {
    return this.#execs.get(sandbox, execId);
  }

  list(sandbox: string, page?: ExecPage): Promise<readonly ExecInfo[]> {
    return this.#execs.list(sandbox, page);
  }

  output(
    sandbox: string,
    execId: string,
    range?: OutputRange,
    signal?: AbortSignal,
  ): AsyncIterable<OutputChunk> {
    return this.#execs.output(sandbox, execId, range, signal);
  }

  writeStdin(sandbox: string, execId: string, data: Uint8Array, signal?: AbortSignal): Promise<void> {
    return this.#execs.writeStdin(sandbox, execId, data, signal);
  }

  closeStdin(sandbox: string, execId: string, signal?: AbortSignal): Promise<void> {
    return this.#execs.closeStdin(sandbox, execId, signal);
  }

  resize(sandbox: string, execId: string, size: TerminalSize): Promise<void> {
    return this.#execs.resize(sandbox, execId, size);
  }

  kill(sandbox: string, execId: string, options?: { signal?: string; graceMs?: number }): Promise<void> {
    return this.#execs.kill(sandbox, execId, options);
  }

  /** Execs that still run stay unrecorded: the next process records what they change. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#recording.values());
    await this.#history.close();
    await this.#execs.close();
  }

  async #startTracked(record: SandboxRecord, request: ExecRequest, signal: AbortSignal | undefined) {
    try {
      return await this.#execs.startIn(record, request, signal, { isTracked: true });
    } catch (thrown) {
      // It may have begun all the same.
      this.#unrecorded.lookAgain(record.id);
      throw thrown;
    }
  }

  #follow(record: SandboxRecord, execId: string): void {
    const key = keyOf(record.id, execId);
    if (this.#open.has(key)) return;
    this.#open.set(key, record);
    this.#execs.wait(record.id, execId, this.#closing.signal).then(
      () => this.#ended(key, execId),
      () => {
        this.#open.delete(key);
        this.#unrecorded.lookAgain(record.id);
      },
    );
  }

  #ended(key: string, execId: string): Promise<void> | undefined {
    const record = this.#open.get(key);
    if (record === undefined) return this.#recording.get(key);
    this.#open.delete(key);
    const recording = this.#record(record, execId).finally(() => this.#recording.delete(key));
    this.#recording.set(key, recording);
    return recording;
  }

  async #record(record: SandboxRecord, execId: string): Promise<void> {
    const isQuiet = this.#execs.endedQuietly(record.id, execId);
    await this.#history.recordExecs(record, [execId], { isQuiet });
    this.#unrecorded.recorded(record.id, execId);
  }
}

function keyOf(sandboxId: string, execId: string): string {
  return `${sandboxId}/${execId}`;
}

/** Without a turn of the loop when there is nothing to wait for. */
async function settle(work: Promise<void> | undefined, signal: AbortSignal | undefined): Promise<void> {
  if (work !== undefined) await orAborted(work, signal);
}
