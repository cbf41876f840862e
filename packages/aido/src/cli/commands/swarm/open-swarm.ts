import { resolve } from "node:path";
import { isAidoError } from "@aido/sdk/protocol";
import { takeDriverLock, tryDriverLock } from "../../../core/swarm/records/driver-lock.ts";
import { SwarmDirectory } from "../../../core/swarm/records/swarm-directory.ts";
import { WorkerRecords } from "../../../core/swarm/records/worker-records.ts";
import { SwarmStateFile } from "../../../core/swarm/state/swarm-state-file.ts";
import type { SwarmDeps } from "../../../core/swarm/swarm-deps.ts";
import type { SwarmEvent } from "../../../core/swarm/swarm-event.ts";
import type { TaskFile } from "../../../core/swarm/tasks/task-file.ts";
import { readTaskFile } from "../../../core/swarm/tasks/task-files.ts";
import { workerName } from "../../../core/swarm/workers/worker-name.ts";
import type { Workers } from "../../../core/swarm/workers/workers.ts";
import { SystemClock } from "../../../core/system-clock.ts";
import type { CliContext } from "../../context.ts";

/** A project's swarm as commands see it. */
export class ProjectSwarm {
  readonly project: string;
  readonly directory: SwarmDirectory;
  readonly state: SwarmStateFile;
  readonly records: WorkerRecords;
  readonly #context: CliContext;

  constructor(context: CliContext, { dir, signal }: { dir: string | undefined; signal: AbortSignal }) {
    this.#context = context;
    this.project = resolve(context.cwd, dir ?? ".");
    this.directory = new SwarmDirectory(this.project);
    this.state = new SwarmStateFile({ project: this.project, signal });
    this.records = new WorkerRecords(this.directory);
  }

  /** With this machine's engine. What is made for a project is kept in its data directory, wherever the command is typed. */
  async withWorkers<Result>(
    work: (deps: SwarmDeps) => Promise<Result>,
    emit: (event: SwarmEvent) => void = () => undefined,
  ): Promise<Result> {
    const { state, records } = this;
    const shared = { state, records, clock: new SystemClock(), pid: process.pid, emit };
    return await this.#context.withWorkers((workers: Workers) => work({ ...shared, workers }), this.project);
  }

  /** For whoever starts and follows workers; refused with SWARM_ACTIVE while another process does. */
  async lock(signal?: AbortSignal): Promise<AsyncDisposable> {
    const lock = await takeDriverLock(this.directory, { pid: process.pid, now: this.#context.now(), signal });
    await this.directory.sweep();
    return lock;
  }

  /** As `lock`, undefined while another process drives the swarm. */
  async tryLock(signal?: AbortSignal): Promise<AsyncDisposable | undefined> {
    try {
      return await this.lock(signal);
    } catch (thrown) {
      if (isAidoError(thrown, "SWARM_ACTIVE")) return undefined;
      throw thrown;
    }
  }

  /** For whoever only looks, for a moment; undefined while anybody holds it. */
  async lookLock(signal?: AbortSignal): Promise<AsyncDisposable | undefined> {
    return await tryDriverLock(this.directory, { signal });
  }

  readonly readTask = async (path: string): Promise<TaskFile | undefined> =>
    await readTaskFile(this.project, path).catch(() => undefined);

  /** `login` for `aimi-swarm-login`, and whole names as they are. */
  nameOf(given: string): string {
    return given.startsWith("aimi-") ? given : workerName(given);
  }
}
