import type { Progress } from "@aido/sdk";
import { isAidoError } from "@aido/sdk/protocol";
import type { Clock } from "../clock.ts";
import type { SandboxRecord, SandboxStore } from "../store/store.ts";
import { orAborted } from "../supervisor/time-limit.ts";

export interface WakeOptions {
  /** Start it when it is stopped, whatever its own setting says. */
  autoResume?: boolean | undefined;
  signal?: AbortSignal | undefined;
  onProgress?: Progress | undefined;
}

interface WakerDeps {
  readonly sandboxes: Pick<SandboxStore, "get">;
  readonly clock: Clock;
  readonly start: (
    id: string,
    options: { signal: AbortSignal; onProgress: Progress },
  ) => Promise<SandboxRecord>;
}

interface Start {
  record: Promise<SandboxRecord>;
  phase: string;
  listeners: Set<Progress>;
  waiting: number;
  /** Aborted when all who waited have left. */
  unwanted: AbortController;
}

/** Another process may be starting or stopping it; an image may have to be fetched. */
const PATIENCE_MS = 120_000;
const POLL_MS = 100;
const FIRST_PHASE = "starting";

/** Starts stopped sandboxes, each once however many ask for it, and knows how far it has got. */
export class SandboxWaker {
  readonly #deps: WakerDeps;
  readonly #starts = new Map<string, Start>();

  constructor(deps: WakerDeps) {
    this.#deps = deps;
  }

  /** What is being done to start it, in this process; undefined when nothing is. */
  phase(id: string): string | undefined {
    return this.#starts.get(id)?.phase;
  }

  isWanted(record: SandboxRecord, options: WakeOptions): boolean {
    return record.state === "stopped" && (options.autoResume ?? record.autoResume);
  }

  /** Whoever asks while it is being started waits for the same start; the last to leave ends it. */
  async start(id: string, options: WakeOptions = {}): Promise<SandboxRecord> {
    options.signal?.throwIfAborted();
    const start = this.#starts.get(id) ?? this.#begin(id);
    const { onProgress } = options;
    if (onProgress !== undefined) {
      onProgress(start.phase);
      start.listeners.add(onProgress);
    }
    start.waiting += 1;
    try {
      return await orAborted(start.record, options.signal);
    } catch (thrown) {
      if (options.signal?.aborted !== true || start.waiting > 1) throw thrown;
      start.unwanted.abort(options.signal.reason);
      // Until what was begun is undone.
      return await start.record;
    } finally {
      start.waiting -= 1;
      if (onProgress !== undefined) start.listeners.delete(onProgress);
    }
  }

  /** As `start`, but waits for another process that starts or stops it right now. */
  async wake(id: string, options: WakeOptions = {}): Promise<SandboxRecord> {
    const { sandboxes, clock } = this.#deps;
    const deadline = clock.now().getTime() + PATIENCE_MS;
    for (;;) {
      try {
        return await this.start(id, options);
      } catch (thrown) {
        if (!isAidoError(thrown, "CONTAINER_BUSY") || clock.now().getTime() >= deadline) throw thrown;
      }
      await clock.sleep(POLL_MS, options.signal);
      const now = await sandboxes.get(id);
      if (now?.state === "running") return now;
    }
  }

  #begin(id: string): Start {
    const listeners = new Set<Progress>();
    const unwanted = new AbortController();
    const tell = (phase: string) => {
      start.phase = phase;
      for (const listener of listeners) listener(phase);
    };
    const record = Promise.resolve()
      .then(() => this.#deps.start(id, { signal: unwanted.signal, onProgress: tell }))
      .finally(() => this.#starts.delete(id));
    // Everybody who waits may have left.
    record.catch(() => undefined);
    const start: Start = { record, phase: FIRST_PHASE, listeners, waiting: 0, unwanted };
    this.#starts.set(id, start);
    return start;
  }
}
