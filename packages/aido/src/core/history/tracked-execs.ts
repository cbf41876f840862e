import type { Execs } from "@aido/sdk";
import type { ExecInfo, ExecRequest, OutputChunk, OutputRange, TerminalSize } from "@aido/sdk/protocol";
import type { SandboxResolver } from "../sandbox/sandbox-resolver.ts";
import type { SandboxRecord } from "../store/store.ts";
import { orAborted } from "../supervisor/time-limit.ts";
import type { HistoryService } from "./history-service.ts";

/** What core's own execs offer besides. */
export interface OwnExecs extends Execs {
  /** Without resolving the sandbox again. */
  startIn(record: SandboxRecord, request: ExecRequest, signal?: AbortSignal): Promise<ExecInfo>;
  close(): Promise<void>;
}

/** Execs whose changes to the workspace become history. Everything else is passed on as it is. */
export class TrackedExecs implements Execs {
  readonly #execs: OwnExecs;
  readonly #history: HistoryService;
  readonly #sandboxes: SandboxResolver;
  /** Tracked execs whose end has not been recorded, by sandbox and exec. */
  readonly #open = new Map<string, SandboxRecord>();
  readonly #recording = new Map<string, Promise<void>>();
  readonly #closing = new AbortController();

  constructor(execs: OwnExecs, history: HistoryService, sandboxes: SandboxResolver) {
    this.#execs = execs;
    this.#history = history;
    this.#sandboxes = sandboxes;
  }

  async start(sandbox: string, request: ExecRequest, signal?: AbortSignal): Promise<ExecInfo> {
    const { autoResume } = request;
    const record = await this.#sandboxes.resolveRunning(sandbox, { autoResume, signal });
    if (!record.history) return this.#execs.startIn(record, request, signal);
    // What was changed before must not become part of this one's entry, nor this one's changes part of that.
    if (request.history === false) {
      await settle(this.#history.settled(record.id), signal);
      return this.#execs.startIn(record, request, signal);
    }
    await settle(this.#history.ready(record), signal);
    const info = await this.#execs.startIn(record, request, signal);
    const key = keyOf(record.id, info.id);
    if (this.#open.has(key)) return info;
    // Asked for again with the same id, it may have been recorded long ago.
    if (info.status !== "running" && this.#history.isRecorded(record, info.id)) return info;
    this.#open.set(key, record);
    this.#execs.wait(record.id, info.id, this.#closing.signal).then(
      () => this.#ended(key, info.id),
      () => undefined,
    );
    return info;
  }

  /** The entry may still be on its way: whoever changes or reads the workspace's history next waits for it. */
  async wait(sandbox: string, execId: string, signal?: AbortSignal): Promise<ExecInfo> {
    const info = await this.#execs.wait(sandbox, execId, signal);
    void this.#ended(keyOf(info.sandboxId, execId), execId);
    return info;
  }

  get(sandbox: string, execId: string): Promise<ExecInfo> {
    return this.#execs.get(sandbox, execId);
  }

  list(sandbox: string): Promise<readonly ExecInfo[]> {
    return this.#execs.list(sandbox);
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

  closeStdin(sandbox: string, execId: string): Promise<void> {
    return this.#execs.closeStdin(sandbox, execId);
  }

  resize(sandbox: string, execId: string, size: TerminalSize): Promise<void> {
    return this.#execs.resize(sandbox, execId, size);
  }

  kill(sandbox: string, execId: string, options?: { signal?: string; graceMs?: number }): Promise<void> {
    return this.#execs.kill(sandbox, execId, options);
  }

  /** Execs that still run stay open: the next process records what they change with the exec after them. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#recording.values());
    await this.#history.close();
    await this.#execs.close();
  }

  #ended(key: string, execId: string): Promise<void> | undefined {
    const record = this.#open.get(key);
    if (record === undefined) return this.#recording.get(key);
    this.#open.delete(key);
    const recording = this.#history.recordExec(record, execId).finally(() => this.#recording.delete(key));
    this.#recording.set(key, recording);
    return recording;
  }
}

function keyOf(sandboxId: string, execId: string): string {
  return `${sandboxId}/${execId}`;
}

/** Without a turn of the loop when there is nothing to wait for. */
async function settle(work: Promise<void> | undefined, signal: AbortSignal | undefined): Promise<void> {
  if (work !== undefined) await orAborted(work, signal);
}
