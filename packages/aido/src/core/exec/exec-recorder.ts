import { type AidoError, isAidoError } from "@aido/sdk/protocol";
import type { Clock } from "../clock.ts";
import type { DataDir } from "../data-dir.ts";
import type { EvidenceSink } from "../evidence/evidence-sink.ts";
import type { Logger } from "../logger.ts";
import type { ExecRecord, SandboxRecord, Store } from "../store/store.ts";
import type { EndFrame } from "../supervisor/frames.ts";
import { END_FLAG } from "../supervisor/protocol.ts";
import type { ExecSpec } from "../supervisor/supervisor.ts";
import type { Supervisors } from "../supervisor/supervisors.ts";
import { ExecEvidence } from "./exec-evidence.ts";
import { type EndOutcome, LOST } from "./exec-status.ts";
import { cannotStart, toFailedStart } from "./failed-start.ts";
import { EndedExec, type FollowedExec, withEnd } from "./followed-exec.ts";
import { recordedSizes } from "./foreign-exec.ts";
import { OwnExec } from "./own-exec.ts";
import { Recording } from "./recording.ts";

const MAX_ATTACHES = 5;
/** How long an exec may be in the store before the supervisor must know it: its EXEC may still be on the way. */
const START_LIMIT_MS = 10_000;
const START_PAUSE_MS = 50;
const SIGKILL = 9;
/** Whoever started a command asks at once how it ended: that much of the past is known without the store. */
const RECENT_MS = 1_000;
const MAX_RECENT = 256;

export interface RecorderDeps {
  store: Store;
  supervisors: Supervisors;
  dataDir: DataDir;
  evidence: EvidenceSink;
  clock: Clock;
  logger: Logger;
}

/** Told of each end that this process was the first to store. */
export type ExecEndListener = (exec: ExecRecord) => void;

/** Which execs this process records, how it comes to record one, and how one ends. */
export class ExecRecorder {
  readonly #deps: RecorderDeps;
  readonly #evidence: ExecEvidence;
  readonly #own = new Map<string, OwnExec>();
  /** Ended a moment ago, oldest first. */
  readonly #recent = new Map<string, OwnExec>();
  /** Execs that another process took over from us; we follow its files unless it falls silent. */
  readonly #yielded = new Set<string>();
  readonly #taking = new Map<string, Promise<FollowedExec>>();
  readonly #finishing = new Set<Promise<void>>();
  readonly #listeners = new Set<ExecEndListener>();

  constructor(deps: RecorderDeps) {
    this.#deps = deps;
    this.#evidence = new ExecEvidence(deps.evidence);
  }

  onEnded(listener: ExecEndListener): void {
    this.#listeners.add(listener);
  }

  own(sandboxId: string, execId: string): OwnExec | undefined {
    return this.#own.get(key(sandboxId, execId));
  }

  /** One that this process records, or did until a moment ago. */
  known(sandboxId: string, execId: string): OwnExec | undefined {
    const own = this.own(sandboxId, execId);
    if (own !== undefined) return own;
    const recent = this.#recent.get(key(sandboxId, execId));
    const endedAt = recent?.record().endedAt?.getTime() ?? 0;
    return this.#deps.clock.now().getTime() - endedAt < RECENT_MS ? recent : undefined;
  }

  hasYielded(sandboxId: string, execId: string): boolean {
    return this.#yielded.has(key(sandboxId, execId));
  }

  /** The record is in the store. When the command cannot be started, the record is ended and the error raised. */
  async start(
    sandbox: SandboxRecord,
    exec: ExecRecord,
    spec: ExecSpec,
    signal?: AbortSignal,
  ): Promise<OwnExec> {
    const own = this.#make(sandbox, exec, { stdout: 0, stderr: 0 });
    try {
      const starting = this.#deps.supervisors.get(sandbox).startExec(spec, own.recording, signal);
      // While the command starts.
      this.#evidence.started(exec, spec);
      own.isStartTold = true;
      await starting;
    } catch (error) {
      const told = cannotStart(exec, error);
      await this.#finish(own, toFailedStart(told, signal), undefined);
      throw told;
    }
    return own;
  }

  /** Records an exec that runs and that nobody may be recording. Resolves to its end when it turns out to have one. */
  takeOver(sandbox: SandboxRecord, exec: ExecRecord): Promise<FollowedExec> {
    const name = key(exec.sandboxId, exec.id);
    const own = this.#own.get(name);
    if (own !== undefined) return Promise.resolve(own);
    const taking =
      this.#taking.get(name) ??
      this.#takeOver(sandbox, exec).finally(() => {
        this.#taking.delete(name);
      });
    this.#taking.set(name, taking);
    return taking;
  }

  /** Writes what has arrived and all evidence. Execs run on; the next process takes them over. */
  async close(): Promise<void> {
    await Promise.all([...this.#finishing]);
    await this.#evidence.close();
    for (const own of this.#own.values()) {
      await own.recording.flush();
      own.recording.close();
    }
    this.#own.clear();
  }

  async #takeOver(sandbox: SandboxRecord, exec: ExecRecord): Promise<FollowedExec> {
    const { clock, dataDir, store, supervisors } = this.#deps;
    const supervisor = supervisors.get(sandbox);
    for (let attempt = 1; ; ) {
      const isLast = attempt === MAX_ATTACHES;
      const recorded = await recordedSizes(dataDir.exec(exec.sandboxId, exec.id));
      const from = isLast ? await this.#held(sandbox, exec, recorded) : recorded;
      const own = this.#make(sandbox, exec, from);
      try {
        await supervisor.attach(exec.id, from, own.recording);
        this.#yielded.delete(key(exec.sandboxId, exec.id));
        return own;
      } catch (error) {
        this.#unmake(own);
        if (isAidoError(error, "OUTPUT_LOST") && !isLast) {
          // The former recorder has written and acknowledged more since we looked.
          attempt += 1;
        } else if (isAidoError(error, "EXECUTION_NOT_FOUND") && this.isYoung(exec)) {
          await clock.sleep(START_PAUSE_MS);
        } else if (isAidoError(error, "EXECUTION_NOT_FOUND") || isGone(error)) {
          return this.#lose(sandbox, exec);
        } else {
          throw error;
        }
      }
      const now = await store.execs.get(exec.sandboxId, exec.id);
      if (now !== undefined && now.status !== "running") return new EndedExec(now);
    }
  }

  /** Nobody can tell how it ended. */
  async #lose(sandbox: SandboxRecord, exec: ExecRecord): Promise<FollowedExec> {
    const own = this.#make(
      sandbox,
      exec,
      await recordedSizes(this.#deps.dataDir.exec(exec.sandboxId, exec.id)),
    );
    await this.#finish(own, LOST, undefined);
    return own;
  }

  /** Where the supervisor's rings begin, when our files end before: what lies between is gone. */
  async #held(
    sandbox: SandboxRecord,
    exec: ExecRecord,
    recorded: { stdout: number; stderr: number },
  ): Promise<{ stdout: number; stderr: number }> {
    const listed = (await this.#deps.supervisors.get(sandbox).list()).find(({ id }) => id === exec.id);
    const from = {
      stdout: Math.max(recorded.stdout, listed?.stdoutBase ?? 0),
      stderr: Math.max(recorded.stderr, listed?.stderrBase ?? 0),
    };
    const fields = {
      event: "exec.record",
      outcome: "gap",
      sandboxId: exec.sandboxId,
      execId: exec.id,
      recorded,
      from,
    };
    this.#deps.logger.error(
      fields,
      "Recorded output is missing; the recording goes on with a gap of zero bytes",
    );
    return from;
  }

  /** Whether its EXEC may still be on the way from another process. */
  isYoung(exec: ExecRecord): boolean {
    return this.#deps.clock.now().getTime() - exec.startedAt.getTime() < START_LIMIT_MS;
  }

  #make(sandbox: SandboxRecord, exec: ExecRecord, from: { stdout: number; stderr: number }): OwnExec {
    const supervisor = this.#deps.supervisors.get(sandbox);
    const name = key(exec.sandboxId, exec.id);
    const recording = new Recording({
      execId: exec.id,
      directory: this.#deps.dataDir.exec(exec.sandboxId, exec.id),
      supervisor,
      from,
      onEnd: (outcome, end) => this.#track(this.#finish(own, outcome, end)),
      onDetached: () => {
        this.#yielded.add(name);
        this.#unmake(own);
        own.detach();
      },
      onWriteError: (error) => {
        const fields = {
          event: "exec.record",
          outcome: "failed",
          sandboxId: exec.sandboxId,
          execId: exec.id,
        };
        const message = `The output of a command cannot be written, so it is killed: ${error.message}`;
        this.#deps.logger.error(fields, message);
        supervisor.kill(exec.id, { signal: SIGKILL, scope: "all", graceMs: 0 }).catch(() => undefined);
      },
    });
    const own = new OwnExec(sandbox, exec, recording);
    this.#own.set(name, own);
    return own;
  }

  #unmake(own: OwnExec): void {
    const { sandboxId, id } = own.record();
    if (this.#own.get(key(sandboxId, id)) === own) this.#own.delete(key(sandboxId, id));
    own.recording.close();
  }

  async #finish(own: OwnExec, outcome: EndOutcome, frame: EndFrame | undefined): Promise<void> {
    const { clock, logger, store, supervisors } = this.#deps;
    const record = own.record();
    const end = {
      ...outcome,
      endedAt: clock.now(),
      stdoutBytes: record.stdoutBytes,
      stderrBytes: record.stderrBytes,
    };
    let final: ExecRecord = withEnd(record, end);
    try {
      const isFirst = await store.execs.end(record.sandboxId, record.id, end);
      if (isFirst) {
        this.#evidence.ended(final, own, frame);
        for (const listener of this.#listeners) listener(final);
      } else final = (await store.execs.get(record.sandboxId, record.id)) ?? final;
      own.isQuiet = frame !== undefined && (frame.flags & END_FLAG.quiet) !== 0;
      const isMain = frame !== undefined && (frame.flags & END_FLAG.main) !== 0;
      if (isMain) supervisors.get(own.sandbox).letEnd(record.id);
    } catch (error) {
      const fields = { event: "exec.end", outcome: "failed", sandboxId: record.sandboxId, execId: record.id };
      logger.error(fields, `The end of a command could not be stored: ${(error as Error).message}`);
    }
    own.end(final);
    this.#unmake(own);
    this.#remember(own);
    this.#yielded.delete(key(record.sandboxId, record.id));
  }

  #remember(own: OwnExec): void {
    const { sandboxId, id } = own.record();
    this.#recent.set(key(sandboxId, id), own);
    for (const name of this.#recent.keys()) {
      if (this.#recent.size <= MAX_RECENT) break;
      this.#recent.delete(name);
    }
  }

  #track(work: Promise<void>): void {
    this.#finishing.add(work);
    void work.finally(() => this.#finishing.delete(work));
  }
}

function key(sandboxId: string, execId: string): string {
  return `${sandboxId}/${execId}`;
}

/** The container is gone for good, as opposed to out of reach. */
export function isGone(error: unknown): error is AidoError {
  return isAidoError(error, "CONTAINER_LOST") && "gone" in error.details;
}
