import { resolve } from "node:path";
import type { Runs } from "@aido/sdk";
import { AidoError, type RunRecord, type RunSummary } from "@aido/sdk/protocol";
import type { CliContext, SignalName } from "../context.ts";
import { note, printResult } from "../output/print.ts";
import { pumpOutput } from "../output/pump-output.ts";
import { EXIT, runExitCode } from "./exit-code.ts";
import { forwardSignals } from "./forward-signals.ts";
import { upForTask } from "./up-for-task.ts";

export interface RunCommandOptions {
  sandbox?: string;
  runtime?: string;
  image?: string;
  ttl?: string;
  env?: readonly string[];
  cpus?: string;
  memory?: string;
  isolation?: string;
  dangerousAllowHostNetwork?: boolean;
  dangerousAllowPrivileged?: boolean;
  /** Undefined leaves it to what the sandbox was made with. */
  autoDestroy?: boolean;
}

export async function run(
  context: CliContext,
  task: string | undefined,
  options: RunCommandOptions,
): Promise<number> {
  check(options, task);
  const interrupt = new Interrupt(context);
  try {
    const { runs } = await context.open();
    const started = await start(context, { runs, task, options, signal: interrupt.signal });
    context.progress.clear();
    if (interrupt.hit === undefined) {
      await note(
        context,
        `Running ${started.task || "its steps"} in sandbox ${started.id} (${started.container.image})`,
      );
    }
    interrupt.onHit(() => runs.cancel(started.id));
    await pumpOutput(context, runs.logs({ sandbox: started.id, follow: true }), {
      ...(context.globals.json ? { hide: ["stdout", "stderr"] } : {}),
      onClosed: () => void runs.cancel(started.id).catch(() => undefined),
    });
    const summary = await runs.wait(started.id);
    await report(context, summary);
    return interrupt.exitCode ?? runExitCode(summary);
  } catch (thrown) {
    if (interrupt.exitCode !== undefined && thrown instanceof Error && interrupt.signal.aborted) {
      await note(context, "aido: interrupted");
      return interrupt.exitCode;
    }
    throw thrown;
  } finally {
    context.progress.clear();
    interrupt.stop();
  }
}

interface Start {
  runs: Runs;
  task: string | undefined;
  options: RunCommandOptions;
  signal: AbortSignal;
}

async function start(context: CliContext, { runs, task, options, signal }: Start): Promise<RunRecord> {
  const { startTask } = await import("../../spec/start-task.ts");
  const how = { signal, onProgress: context.progress.show };
  const path = task === undefined ? undefined : resolve(context.cwd, task);
  const sandbox =
    path !== undefined && needsOwnSandbox(options)
      ? await upForTask(context, runs, { path, options, how })
      : options.sandbox;
  return startTask(
    runs,
    {
      task: path,
      sandbox,
      projectDir: context.cwd,
      autoDestroy: options.autoDestroy,
      hostNetwork: options.dangerousAllowHostNetwork,
      privileged: options.dangerousAllowPrivileged,
    },
    how,
  );
}

function needsOwnSandbox(options: RunCommandOptions): boolean {
  const { runtime, image, ttl, env, cpus, memory, isolation } = options;
  return (
    [runtime, image, ttl, cpus, memory, isolation].some((each) => each !== undefined) ||
    (env ?? []).length > 0
  );
}

function check(options: RunCommandOptions, task: string | undefined): void {
  if (options.runtime !== undefined && options.image !== undefined) {
    throw new AidoError("VALIDATION_ERROR", "--runtime and --image exclude each other", {
      hint: "A runtime is python, node, bash or an image.",
    });
  }
  if (!needsOwnSandbox(options)) return;
  if (options.sandbox !== undefined) {
    throw new AidoError(
      "VALIDATION_ERROR",
      "--sandbox is already made: it takes no other runtime, ttl or limits",
      {
        hint: "Leave --sandbox away to run in a new sandbox, or leave the other options away.",
      },
    );
  }
  if (task === undefined) {
    throw new AidoError("VALIDATION_ERROR", "Which task?", { hint: "Name a file: aido run task.py" });
  }
}

async function report(context: CliContext, summary: RunSummary): Promise<void> {
  if (context.globals.json) return printResult(context, summary, () => "");
  if (summary.status === "timeout")
    await note(context, `aido: The task was killed: its time was up (exit ${EXIT.timedOut}).`);
  if (summary.error !== undefined) await note(context, `aido: ${summary.error}`);
  if (summary.missingOutputs.length > 0) {
    await note(context, `aido: The task did not write: ${summary.missingOutputs.join(", ")}`);
  }
  if (summary.outputFiles.length > 0) {
    await note(
      context,
      `aido: ${summary.outputFiles.length} output file(s): ${summary.outputFiles.slice(0, 5).join(", ")}${summary.outputFiles.length > 5 ? ", …" : ""}`,
    );
  }
}

/** The first signal ends the run in order; what it means depends on how far the run has come. */
class Interrupt {
  hit: SignalName | undefined;
  readonly #abort = new AbortController();
  readonly #stop: () => void;
  #cancel: (() => Promise<void>) | undefined;

  constructor(context: CliContext) {
    this.#stop = forwardSignals(context.signals, (signal) => {
      this.hit = signal;
      if (this.#cancel === undefined) this.#abort.abort();
      else this.#end();
    });
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get exitCode(): number | undefined {
    if (this.hit === undefined) return undefined;
    return { SIGINT: 130, SIGTERM: 143, SIGHUP: 129, SIGQUIT: 131, SIGWINCH: 156 }[this.hit];
  }

  /** From now on a signal cancels the run; one that came while it was starting does so at once. */
  onHit(cancel: () => Promise<void>): void {
    this.#cancel = cancel;
    if (this.hit !== undefined) this.#end();
  }

  stop(): void {
    this.#stop();
  }

  #end(): void {
    // The wait for the run's end reports whatever is wrong.
    void this.#cancel?.().catch(() => undefined);
  }
}
