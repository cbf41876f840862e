import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Runs } from "@aido/sdk";
import { AidoError, type RunRecord, type RunSummary } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { note, printResult } from "../output/print.ts";
import { printable, printableLines } from "../output/printable.ts";
import { pumpOutput } from "../output/pump-output.ts";
import { EXIT, runExitCode } from "./exit-code.ts";
import { Interrupt } from "./interrupt.ts";
import { startInOwnSandbox } from "./start-in-own-sandbox.ts";

export interface RunCommandOptions {
  sandbox?: string;
  runtime?: string;
  image?: string;
  ttl?: string;
  env?: readonly string[];
  cpus?: string;
  memory?: string;
  pids?: string;
  disk?: string;
  isolation?: string;
  dangerousAllowHostNetwork?: boolean;
  dangerousAllowPrivileged?: boolean;
  /** Undefined leaves it to what the sandbox was made with. */
  autoDestroy?: boolean;
}

const LAST_WORDS_MS = 1000;
const MAX_SHOWN = 5;

export async function run(
  context: CliContext,
  task: string | undefined,
  options: RunCommandOptions,
): Promise<number> {
  check(options, task);
  const interrupt = new Interrupt(context);
  try {
    const { runs } = await context.open({ launches: true, sandbox: options.sandbox });
    const started = await start(context, { runs, task, options, signal: interrupt.signal });
    context.progress.clear();
    if (interrupt.hit === undefined) {
      await note(
        context,
        `Running ${started.task || "its steps"} in sandbox ${started.id} (${madeOf(started)})`,
      );
    }
    return await follow(context, runs, started.id, interrupt);
  } catch (thrown) {
    if (interrupt.exitCode === undefined || !interrupt.signal.aborted) throw thrown;
    await note(context, "aido: interrupted");
    return interrupt.exitCode;
  } finally {
    context.progress.clear();
    interrupt.stop();
  }
}

function madeOf({ container: { image, programs } }: RunRecord): string {
  return programs === undefined ? image : `${programs} in place of ${image}`;
}

async function follow(context: CliContext, runs: Runs, id: string, interrupt: Interrupt): Promise<number> {
  const interrupted = interrupt.onHit(() => runs.cancel(id));
  const output = pumpOutput(context, runs.logs({ sandbox: id, follow: true }), {
    ...(context.globals.json ? { hide: ["stdout", "stderr"] } : {}),
    onClosed: () => void runs.cancel(id).catch(() => undefined),
  });
  output.catch(() => undefined);
  // Whoever reads the output may have stopped reading; after a signal the run's end does not wait for them.
  const summary = await Promise.race([output, interrupted]).then(() => runs.wait(id));
  if (interrupt.hit !== undefined && !(await settles(output))) context.signals.die(interrupt.hit);
  await report(context, summary);
  return interrupt.exitCode ?? runExitCode(summary);
}

/** Whether the last of the output is taken soon. */
async function settles(output: Promise<void>): Promise<boolean> {
  const late = new AbortController();
  const taken = output.then(
    () => true,
    () => true,
  );
  const settled = await Promise.race([taken, sleep(LAST_WORDS_MS, false, { signal: late.signal })]);
  late.abort();
  return settled;
}

interface Start {
  runs: Runs;
  task: string | undefined;
  options: RunCommandOptions;
  signal: AbortSignal;
}

async function start(context: CliContext, { runs, task, options, signal }: Start): Promise<RunRecord> {
  const how = { signal, onProgress: context.progress.show };
  const path = task === undefined ? undefined : resolve(context.cwd, task);
  if (path !== undefined && needsOwnSandbox(options))
    return startInOwnSandbox(context, runs, { path, options, how });
  const { startTask } = await import("../../spec/start-task.ts");
  return startTask(
    runs,
    {
      task: path,
      sandbox: options.sandbox,
      projectDir: context.cwd,
      autoDestroy: options.autoDestroy,
      hostNetwork: options.dangerousAllowHostNetwork,
      privileged: options.dangerousAllowPrivileged,
    },
    how,
  );
}

function needsOwnSandbox(options: RunCommandOptions): boolean {
  const { runtime, image, ttl, env, cpus, memory, pids, disk, isolation } = options;
  return (
    [runtime, image, ttl, cpus, memory, pids, disk, isolation].some((each) => each !== undefined) ||
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
  if (summary.error !== undefined) await note(context, `aido: ${printableLines(summary.error)}`);
  if (summary.missingOutputs.length > 0) {
    const missing = summary.missingOutputs.map(printable).join(", ");
    await note(context, `aido: The task did not write: ${missing}`);
  }
  if (summary.skippedOutputs !== undefined) {
    const { total, first } = summary.skippedOutputs;
    const shown = first.slice(0, MAX_SHOWN).map(({ path, reason }) => printable(`${path} (${reason})`));
    const left = total > shown.length ? ", …" : "";
    await note(context, `aido: ${total} output(s) were left out: ${shown.join(", ")}${left}`);
  }
  if (summary.outputFiles.length > 0) {
    const count = summary.outputFiles.length;
    const shown = summary.outputFiles.slice(0, MAX_SHOWN).map(printable).join(", ");
    await note(context, `aido: ${count} output file(s): ${shown}${count > MAX_SHOWN ? ", …" : ""}`);
    await note(context, `aido: Copy them with: aido outputs ${summary.sandboxId} --to <directory>`);
  }
}
