import {
  AidoError,
  type ExecInfo,
  isAidoError,
  type RunRecord,
  type StepRecord,
  toAidoError,
} from "@aido/sdk/protocol";
import { interpreterFor } from "./run-command.ts";
import type { RunDeps } from "./run-deps.ts";
import type { RunJournal } from "./run-journal.ts";
import { type RunOutcome, toOutcome } from "./run-outcome.ts";
import { RunOutputFiles } from "./run-output-files.ts";
import type { PlannedTask, RunPlan } from "./run-plan.ts";

/** How long an exec may take to be told as ended once its sandbox is gone. */
const SETTLE_MS = 10_000;
/** A command that is over by then has not cost a look at its container, which an engine is slow at just after a start. */
const WATCH_AFTER_MS = 200;

/** Executes the tasks of one run, one after another, and stops at the first that fails. */
export class RunExecutor {
  readonly #deps: RunDeps;
  readonly #journal: RunJournal;
  readonly #plan: RunPlan;
  readonly #files: RunOutputFiles;
  #following: Promise<void> = Promise.resolve();
  #cancelled = false;

  constructor(deps: RunDeps, journal: RunJournal, plan: RunPlan) {
    this.#deps = deps;
    this.#journal = journal;
    this.#plan = plan;
    this.#files = new RunOutputFiles(deps, journal.layout(plan.sandboxId), plan);
  }

  /** The task runs when this resolves. `starting` aborts the start alone, `signal` also what follows the task. */
  async start(index: number, signal: AbortSignal, starting: AbortSignal = signal): Promise<void> {
    const task = this.#task(index);
    const { sandboxId } = this.#plan;
    if (task.step !== undefined) {
      await this.#step(index, { status: "running" });
      await this.#deps.evidence.append(sandboxId, "step.starting", { step: task.step, task: task.task });
    }
    this.#files.link(index);
    try {
      await this.#deps.execs.start(
        sandboxId,
        { id: task.execId, argv: task.argv, env: task.env, timeoutMs: task.timeoutMs },
        starting,
      );
    } catch (thrown) {
      if (task.step !== undefined) await this.#step(index, { status: "failed" });
      throw explain(thrown, task, this.#plan);
    }
    this.#follow(index, signal);
  }

  /** Goes on with a task that another process has started; its output so far is put together again. */
  async resume(index: number, signal: AbortSignal): Promise<void> {
    await this.#files.rebuild(index);
    this.#follow(index, signal);
  }

  /** Sees a started task, and those after it, to their end. */
  async complete(from: number, signal: AbortSignal): Promise<RunOutcome> {
    for (let index = from; ; index++) {
      const outcome = await this.#end(index, signal);
      const isLast = index + 1 >= this.#plan.tasks.length;
      if (outcome.status !== "completed" || isLast) {
        await this.skipFrom(index + 1);
        return outcome;
      }
      if (this.#cancelled) {
        await this.skipFrom(index + 1);
        return { status: "failed", exitCode: outcome.exitCode, error: "The run was cancelled" };
      }
      const failure = await this.#startNext(index + 1, signal);
      if (failure !== undefined) return failure;
    }
  }

  /** As `complete`, for a task that was never started. */
  async startAndComplete(from: number, signal: AbortSignal): Promise<RunOutcome> {
    await this.#files.rebuild(from);
    return (await this.#startNext(from, signal)) ?? (await this.complete(from, signal));
  }

  async #startNext(index: number, signal: AbortSignal): Promise<RunOutcome | undefined> {
    try {
      await this.start(index, signal);
      return undefined;
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      await this.skipFrom(index + 1);
      return { status: "failed", exitCode: null, error: toAidoError(thrown).message };
    }
  }

  async skipFrom(index: number): Promise<void> {
    for (let i = index; i < this.#plan.tasks.length; i++) {
      if (this.#task(i).step !== undefined) await this.#step(i, { status: "skipped" });
    }
  }

  async cancel(): Promise<void> {
    this.#cancelled = true;
    await Promise.all(
      this.#plan.tasks.map((task) =>
        this.#deps.execs.kill(this.#plan.sandboxId, task.execId, { signal: "TERM" }).catch(ignoreNotRunning),
      ),
    );
  }

  #follow(index: number, signal: AbortSignal): void {
    this.#following = this.#files.follow(index, signal);
    // Its failure shows where it is awaited; until then it must not count as unhandled.
    this.#following.catch(() => undefined);
  }

  async #end(index: number, signal: AbortSignal): Promise<RunOutcome> {
    const task = this.#task(index);
    const exec = await this.#wait(task, signal);
    await this.#following;
    // How its sandbox ended matters only when the command did not come to an end of its own.
    const isOwnEnd = exec?.status === "exited";
    const sandbox = isOwnEnd ? undefined : await this.#deps.sandboxes.get(this.#plan.sandboxId);
    const outcome = toOutcome(exec, sandbox?.endReason);
    if (task.step !== undefined) {
      const { status, exitCode } = outcome;
      await this.#step(index, { status, exitCode, durationMs: exec?.durationMs ?? null });
      await this.#deps.evidence.append(this.#plan.sandboxId, `step.${status}`, {
        step: task.step,
        task: task.task,
        exitCode,
        durationMs: exec?.durationMs ?? null,
      });
    }
    return outcome;
  }

  /** Undefined when the sandbox is gone and nobody can tell how the command ended. */
  async #wait(task: PlannedTask, signal: AbortSignal): Promise<ExecInfo | undefined> {
    const { execs, lifecycle, clock } = this.#deps;
    const over = new AbortController();
    const either = AbortSignal.any([signal, over.signal]);
    const gone = async (): Promise<undefined> => {
      await clock.sleep(WATCH_AFTER_MS, either);
      await lifecycle.untilEnded(this.#plan.sandboxId, either);
      await clock.sleep(SETTLE_MS, either);
      return undefined;
    };
    try {
      const exec = await Promise.race([execs.wait(this.#plan.sandboxId, task.execId, either), gone()]);
      // A command ends a moment before its sandbox is seen to; only the sandbox's end tells why.
      if (exec?.status === "lost" || (exec?.status === "killed" && (await this.#isDue()))) {
        await Promise.race([
          lifecycle.untilEnded(this.#plan.sandboxId, either),
          clock.sleep(SETTLE_MS, either),
        ]);
      }
      return exec;
    } finally {
      over.abort();
    }
  }

  async #isDue(): Promise<boolean> {
    const expiresAt = (await this.#deps.store.sandboxes.get(this.#plan.sandboxId))?.expiresAt;
    return expiresAt !== undefined && expiresAt.getTime() <= this.#deps.clock.now().getTime() + 1_000;
  }

  async #step(index: number, patch: Partial<StepRecord>): Promise<void> {
    const record = await this.#journal.record(this.#plan.sandboxId);
    const steps = (record.steps ?? []).map((step, i) => (i === index ? { ...step, ...patch } : step));
    await this.#journal.writeRecord({ ...record, steps } satisfies RunRecord);
  }

  #task(index: number): PlannedTask {
    const task = this.#plan.tasks[index];
    if (task === undefined) throw new Error(`no task ${index} in the run of ${this.#plan.sandboxId}`);
    return task;
  }
}

/** A program that is missing is the usual reason, and the image is where it is missing. */
function explain(thrown: unknown, task: PlannedTask, plan: RunPlan): AidoError {
  const error = toAidoError(thrown);
  if (error.kind !== "invalid" && error.kind !== "internal" && error.kind !== "not_found") return error;
  const program = interpreterFor(plan.spec.runtime, task.task);
  return new AidoError(error.code, `${task.task} could not be started with ${program}: ${error.message}`, {
    hint: `Does the runtime ${plan.spec.runtime} have ${program}? Name one that does in sandbox.yaml.`,
    details: { ...error.details, task: task.task, program, runtime: plan.spec.runtime },
    cause: thrown,
  });
}

function ignoreNotRunning(thrown: unknown): void {
  if (isAidoError(thrown) && (thrown.kind === "not_found" || thrown.kind === "conflict")) return;
  throw thrown;
}
