import { randomUUID } from "node:crypto";
import type { ExecPage, Execs } from "@aido/sdk";
import {
  AidoError,
  type ExecInfo,
  type ExecRequest,
  isAidoError,
  type OutputChunk,
  type OutputRange,
  type TerminalSize,
} from "@aido/sdk/protocol";
import type { SandboxResolver } from "../sandbox/sandbox-resolver.ts";
import type { ExecRecord, SandboxRecord } from "../store/store.ts";
import type { ExecSpec } from "../supervisor/supervisor.ts";
import { orAborted } from "../supervisor/time-limit.ts";
import { ExecFollower, execNotFound } from "./exec-follower.ts";
import { type ExecEndListener, ExecRecorder, type RecorderDeps } from "./exec-recorder.ts";
import { toExecSpec } from "./exec-spec.ts";
import { toSignalNumber } from "./exec-status.ts";
import { ExecUsers } from "./exec-users.ts";
import { mustHaveStarted, refuseOther } from "./failed-start.ts";
import { toExecInfo } from "./followed-exec.ts";
import { readOutput } from "./read-output.ts";
import { settleExecs } from "./settle-execs.ts";

const DEFAULT_GRACE_MS = 2_000;
const SIGTERM = 15;

export interface ExecServiceDeps extends RecorderDeps {
  sandboxes: SandboxResolver;
  /** For execs whose caller has not chosen an id. */
  newExecId?: (() => string) | undefined;
}

interface StartOptions {
  /** The sandbox ends with it, and with its exit code, once all it said is recorded. */
  isMain?: boolean | undefined;
  /** What it changes is to become history. */
  isTracked?: boolean | undefined;
}

/** Commands in sandboxes. The store knows every exec before it starts, so none is lost with this process. */
export class ExecService implements Execs {
  readonly #deps: ExecServiceDeps;
  readonly #recorder: ExecRecorder;
  readonly #users = new ExecUsers();

  constructor(deps: ExecServiceDeps) {
    this.#deps = deps;
    this.#recorder = new ExecRecorder(deps);
  }

  onEnded(listener: ExecEndListener): void {
    this.#recorder.onEnded(listener);
  }

  async start(sandbox: string, request: ExecRequest, signal?: AbortSignal): Promise<ExecInfo> {
    const { autoResume } = request;
    return this.startIn(
      await this.#deps.sandboxes.resolveRunning(sandbox, { autoResume, signal }),
      request,
      signal,
    );
  }

  /** As `start`, for a caller that has just resolved the sandbox. */
  async startIn(
    record: SandboxRecord,
    request: ExecRequest,
    signal?: AbortSignal,
    options: StartOptions = {},
  ): Promise<ExecInfo> {
    const { clock, newExecId = randomExecId, store, supervisors } = this.#deps;
    let id = request.id ?? newExecId();
    const user =
      request.user === undefined
        ? undefined
        : await this.#users.resolve(supervisors.get(record), request.user, signal);
    let spec: ExecSpec = { ...toExecSpec(record, request, id, user), isMain: options.isMain };
    const toRecord = (): ExecRecord => ({
      id,
      sandboxId: record.id,
      argv: request.argv,
      status: "running",
      exitCode: undefined,
      signal: undefined,
      startError: undefined,
      fingerprint: request.fingerprint,
      startedAt: clock.now(),
      endedAt: undefined,
      stdoutBytes: 0,
      stderrBytes: 0,
      unrecorded: options.isTracked === true,
    });
    let exec = toRecord();
    while (!(await store.execs.insert(exec))) {
      if (request.id !== undefined) return this.#repeatedIn(record, request, id);
      // Drawn by chance and taken: not the caller's exec.
      id = newExecId();
      spec = { ...spec, id };
      exec = toRecord();
    }
    const own = await this.#recorder.start(record, exec, spec, signal);
    return toExecInfo(own.record());
  }

  async get(sandbox: string, execId: string): Promise<ExecInfo> {
    return this.#getIn(await this.#deps.sandboxes.resolve(sandbox), execId);
  }

  async #getIn(record: SandboxRecord, execId: string): Promise<ExecInfo> {
    return toExecInfo(await this.#recordIn(record, execId));
  }

  async #recordIn(record: SandboxRecord, execId: string): Promise<ExecRecord> {
    const known = this.#recorder.known(record.id, execId);
    if (known !== undefined) return known.record();
    const exec = await this.#deps.store.execs.get(record.id, execId);
    if (exec === undefined) throw execNotFound(record.id, execId);
    return this.#settled(record, [exec]).then(([settled]) => settled ?? exec);
  }

  /** The exec that has the request's id, also when its sandbox no longer runs; refused when it is another one. */
  async repeated(sandbox: string, request: ExecRequest): Promise<ExecInfo | undefined> {
    if (request.id === undefined) return undefined;
    const record = await this.#deps.sandboxes.resolve(sandbox);
    try {
      return await this.#repeatedIn(record, request, request.id);
    } catch (thrown) {
      if (isAidoError(thrown, "EXECUTION_NOT_FOUND")) return undefined;
      throw thrown;
    }
  }

  async #repeatedIn(record: SandboxRecord, request: ExecRequest, id: string): Promise<ExecInfo> {
    const exec = await this.#recordIn(record, id);
    refuseOther(exec, request);
    return mustHaveStarted(toExecInfo(exec));
  }

  async list(sandbox: string, page?: ExecPage): Promise<readonly ExecInfo[]> {
    const record = await this.#deps.sandboxes.resolve(sandbox);
    const execs = await this.#deps.store.execs.list(record.id, page);
    return (await this.#settled(record, execs)).map(toExecInfo);
  }

  /** Whether a watch of its workspace would tell of nothing since it was last asked; false of one that is not known. */
  endedQuietly(sandboxId: string, execId: string): boolean {
    return this.#recorder.known(sandboxId, execId)?.isQuiet === true;
  }

  /** Those that run now, whoever started them; what ended with nobody listening is settled first. */
  async running(sandbox: SandboxRecord): Promise<readonly ExecRecord[]> {
    const execs = await this.#deps.store.execs.running(sandbox.id);
    return (await this.#settled(sandbox, execs)).filter(({ status }) => status === "running");
  }

  async wait(sandbox: string, execId: string, signal?: AbortSignal): Promise<ExecInfo> {
    const record = await this.#sandboxOf(sandbox, execId);
    const follower = this.#follower(record, execId);
    for (;;) {
      signal?.throwIfAborted();
      const current = follower.current();
      const exec = current instanceof Promise ? await orAborted(current, signal) : current;
      if (exec.isEnded()) return toExecInfo(exec.record());
      await exec.change(signal);
    }
  }

  async *output(
    sandbox: string,
    execId: string,
    range: OutputRange = {},
    signal?: AbortSignal,
  ): AsyncGenerator<OutputChunk, void, undefined> {
    const record = await this.#sandboxOf(sandbox, execId);
    const directory = this.#deps.dataDir.exec(record.id, execId);
    const follower = this.#follower(record, execId);
    if (range.follow === true) {
      yield* readOutput(directory, range, () => follower.current(), signal);
      return;
    }
    const info = await this.#getIn(record, execId);
    const sizes = { stdout: info.stdoutBytes, stderr: info.stderrBytes };
    const still = {
      sizes: () => sizes,
      isEnded: () => true,
      record: () => ({
        ...info,
        startError: info.startError,
        unrecorded: false,
        fingerprint: undefined,
      }),
      change: async () => undefined,
    };
    yield* readOutput(directory, range, () => still, signal);
  }

  async writeStdin(sandbox: string, execId: string, data: Uint8Array, signal?: AbortSignal): Promise<void> {
    const record = await this.#following(sandbox, execId, signal);
    await this.#deps.supervisors.get(record).writeStdin(execId, data, signal);
  }

  async closeStdin(sandbox: string, execId: string, signal?: AbortSignal): Promise<void> {
    const record = await this.#following(sandbox, execId, signal);
    await this.#deps.supervisors.get(record).closeStdin(execId, signal);
  }

  /**
   * All of an exec's input at once, and its end: called again, also by another process, it gives nothing more, wherever
   * the first was interrupted. False when another process has taken the exec over meanwhile, and gives it perhaps.
   */
  async giveStdin(sandbox: string, execId: string, data: Uint8Array, signal?: AbortSignal): Promise<boolean> {
    const record = await this.#following(sandbox, execId, signal);
    await this.#deps.supervisors.get(record).giveStdin(execId, data, signal);
    return this.#recorder.known(record.id, execId) !== undefined;
  }

  async resize(sandbox: string, execId: string, size: TerminalSize): Promise<void> {
    const record = await this.#deps.sandboxes.resolveRunning(sandbox);
    await this.#deps.supervisors.get(record).resize(execId, size);
  }

  async kill(
    sandbox: string,
    execId: string,
    options: { signal?: string; graceMs?: number } = {},
  ): Promise<void> {
    const signal = toSignalNumber(options.signal ?? "TERM");
    const graceMs = signal === SIGTERM ? (options.graceMs ?? DEFAULT_GRACE_MS) : 0;
    const record = await this.#deps.sandboxes.resolve(sandbox);
    const exec = await this.#deps.store.execs.get(record.id, execId);
    if (exec === undefined) throw execNotFound(record.id, execId);
    if (exec.status !== "running" && record.state !== "running") return;
    try {
      // An ended exec may have left children behind: they are its own and die with it.
      await this.#deps.supervisors.get(record).kill(execId, { signal, scope: "all", graceMs });
    } catch (error) {
      if (isAidoError(error, "EXECUTION_NOT_FOUND")) return;
      if (exec.status === "running" || !isAidoError(error, "CONTAINER_LOST")) throw error;
    }
  }

  /** After a restart: takes over all that runs, and ends as lost what the supervisor does not know. */
  async recover(sandboxId: string): Promise<void> {
    const record = await this.#deps.sandboxes.resolve(sandboxId);
    for (const exec of await this.#deps.store.execs.running(record.id)) {
      await this.#recorder.takeOver(record, exec);
    }
  }

  /** Waits until all that was said is written. Call it before the connections are closed. */
  async close(): Promise<void> {
    await this.#recorder.close();
  }

  /** Without asking the store when the exec is recorded here. */
  async #sandboxOf(sandbox: string, execId: string): Promise<SandboxRecord> {
    return this.#recorder.known(sandbox, execId)?.sandbox ?? (await this.#deps.sandboxes.resolve(sandbox));
  }

  #settled(record: SandboxRecord, execs: readonly ExecRecord[]): Promise<readonly ExecRecord[]> {
    return settleExecs(this.#deps, this.#recorder, record, execs);
  }

  #follower(record: SandboxRecord, execId: string): ExecFollower {
    return new ExecFollower(this.#deps, this.#recorder, record, execId);
  }

  /** Standard input is acknowledged to whoever follows the exec, so writing to it means following it. */
  async #following(sandbox: string, execId: string, signal?: AbortSignal): Promise<SandboxRecord> {
    const record = await this.#deps.sandboxes.resolveRunning(sandbox);
    if (this.#recorder.own(record.id, execId) !== undefined) return record;
    const exec = await this.#deps.store.execs.get(record.id, execId);
    if (exec === undefined) throw execNotFound(record.id, execId);
    const now =
      exec.status === "running" ? await orAborted(this.#recorder.takeOver(record, exec), signal) : undefined;
    if (now === undefined || now.isEnded()) {
      throw new AidoError("EXECUTION_CONFLICT", `Exec ${execId} has ended and reads no more input`);
    }
    return record;
  }
}

/** From a UUID, because Node draws the chance for many of them at once: each draw is a system call on the way of a command. */
function randomExecId(): string {
  return `exec_${randomUUID().slice(0, 8)}`;
}
