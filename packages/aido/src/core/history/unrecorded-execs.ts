import type { ExecRecord, ExecStore, SandboxRecord } from "../store/store.ts";
import type { HistoryService } from "./history-service.ts";

export interface UnrecordedDeps {
  store: Pick<ExecStore, "unrecorded" | "markRecorded">;
  history: Pick<HistoryService, "isRecorded" | "recordExecs">;
  /** Those that run now; what ended with nobody listening is settled first. */
  running(record: SandboxRecord): Promise<unknown>;
  /** One whose end this process records anyway. */
  isOwn(sandboxId: string, execId: string): boolean;
}

/** Marks are taken back so many at a time, because one write for each exec would be on its way. */
const MARK_AT_ONCE = 64;
const MAX_DONE = 10_000;

/**
 * Execs that ended or run without a process that records them: it was killed, or closed meanwhile. The store has marked them
 * since they began; a mark that is left although the exec is recorded does no harm.
 */
export class UnrecordedExecs {
  readonly #deps: UnrecordedDeps;
  readonly #catching = new Map<string, Promise<void>>();
  /** Sandboxes in which nothing is left. */
  readonly #done = new Set<string>();
  #marked: { sandboxId: string; id: string }[] = [];

  constructor(deps: UnrecordedDeps) {
    this.#deps = deps;
  }

  /** Resolves when what has ended in the sandbox is recorded, before anything else changes there; undefined when it is. */
  caughtUp(record: SandboxRecord): Promise<void> | undefined {
    if (this.#done.has(record.id) || !record.history || record.state !== "running") return undefined;
    const catching =
      this.#catching.get(record.id) ??
      this.#catchUp(record).finally(() => {
        this.#catching.delete(record.id);
      });
    this.#catching.set(record.id, catching);
    return catching;
  }

  /** Something may be left in this sandbox. */
  lookAgain(sandboxId: string): void {
    this.#done.delete(sandboxId);
  }

  /** Begins to record what has ended, oldest first; whatever still runs is the caller's to follow. */
  async take(record: SandboxRecord): Promise<{ running: readonly ExecRecord[]; recording: Promise<void> }> {
    let left = await this.#left(record);
    if (left.some(isRunning)) {
      await this.#deps.running(record);
      left = await this.#left(record);
    }
    const ended = left.filter((exec) => !isRunning(exec)).map(({ id }) => id);
    const recording = ended.length === 0 ? Promise.resolve() : this.#record(record, ended);
    return { running: left.filter(isRunning), recording };
  }

  /** It is recorded, or could not be. */
  recorded(sandboxId: string, id: string): void {
    this.#marked.push({ sandboxId, id });
    if (this.#marked.length < MARK_AT_ONCE) return;
    const batch = this.#marked;
    this.#marked = [];
    // What stays marked is found to be recorded by whoever looks next.
    this.#deps.store.markRecorded(batch).catch(() => undefined);
  }

  async #catchUp(record: SandboxRecord): Promise<void> {
    try {
      const { running, recording } = await this.take(record);
      await recording;
      // Another process records these, unless it dies: looked at again until they have ended.
      if (running.length > 0) return;
    } catch {
      // Whoever waits finds out what is wrong with the sandbox; the next one tries again.
      return;
    }
    this.#done.add(record.id);
    const [oldest] = this.#done;
    if (this.#done.size > MAX_DONE && oldest !== undefined) this.#done.delete(oldest);
  }

  async #left(record: SandboxRecord): Promise<ExecRecord[]> {
    const left: ExecRecord[] = [];
    for (const exec of await this.#deps.store.unrecorded(record.id)) {
      if (this.#deps.isOwn(record.id, exec.id)) continue;
      if (!this.#deps.history.isRecorded(record, exec.id)) left.push(exec);
      else this.recorded(record.id, exec.id);
    }
    return left;
  }

  async #record(record: SandboxRecord, execIds: readonly string[]): Promise<void> {
    await this.#deps.history.recordExecs(record, execIds);
    for (const id of execIds) this.recorded(record.id, id);
  }
}

function isRunning({ status }: ExecRecord): boolean {
  return status === "running";
}
