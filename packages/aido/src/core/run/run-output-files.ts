import {
  closeSync,
  createReadStream,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { appendFile, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { RunDeps } from "./run-deps.ts";
import type { RunLayout } from "./run-layout.ts";
import { type PlannedTask, type RunPlan, stepLog } from "./run-plan.ts";

const STREAMS = ["stdout", "stderr"] as const;

/** `stdout.log` and `stderr.log`: the host's own files, out of every mount, that grow while the task runs. */
export class RunOutputFiles {
  readonly #deps: RunDeps;
  readonly #layout: RunLayout;
  readonly #plan: RunPlan;

  constructor(deps: RunDeps, layout: RunLayout, plan: RunPlan) {
    this.#deps = deps;
    this.#layout = layout;
    this.#plan = plan;
  }

  /** Drops what an earlier run in the same sandbox left. */
  async clear(): Promise<void> {
    await rm(this.#layout.outputs, { recursive: true, force: true });
    mkdirSync(this.#layout.outputs, { recursive: true });
    for (const stream of STREAMS) writeFileSync(join(this.#layout.outputs, `${stream}.log`), "");
  }

  /**
   * The recorded output gets a second name before its first byte, so that the log grows with it and is stored once
   * however large it is.
   */
  link(index: number): void {
    const task = this.#task(index);
    const recorded = this.#deps.dataDir.exec(this.#plan.sandboxId, task.execId);
    mkdirSync(recorded, { recursive: true, mode: 0o700 });
    for (const stream of STREAMS) {
      const name = task.step === undefined ? `${stream}.log` : stepLog(index, task.step, stream);
      const target = join(this.#layout.outputs, name);
      mkdirSync(dirname(target), { recursive: true });
      closeSync(openSync(join(recorded, stream), "a", 0o600));
      rmSync(target, { force: true });
      linkSync(join(recorded, stream), target);
    }
  }

  /** A pipeline's own logs: what its steps write, in their order, as it comes. */
  async follow(index: number, signal: AbortSignal): Promise<void> {
    const task = this.#task(index);
    if (task.step === undefined) return;
    const chunks = this.#deps.execs.output(this.#plan.sandboxId, task.execId, { follow: true }, signal);
    for await (const chunk of chunks) {
      await appendFile(join(this.#layout.outputs, `${chunk.stream}.log`), chunk.data);
    }
  }

  /**
   * Puts a pipeline's own logs together again after a process died in the middle of writing them: what the steps
   * before `until` wrote.
   */
  async rebuild(until: number): Promise<void> {
    const started: number[] = [];
    for (const [index, task] of this.#plan.tasks.entries()) {
      if (!existsSync(this.#deps.dataDir.exec(this.#plan.sandboxId, task.execId))) continue;
      if (index < until) started.push(index);
      this.link(index);
    }
    if (this.#plan.tasks[0]?.step === undefined) return;
    for (const stream of STREAMS) {
      const target = join(this.#layout.outputs, `${stream}.log`);
      const whole = await open(`${target}.tmp`, "w");
      try {
        for (const index of started) {
          const part = join(this.#layout.outputs, stepLog(index, this.#task(index).step ?? "", stream));
          for await (const chunk of createReadStream(part)) await whole.writeFile(chunk as Uint8Array);
        }
      } finally {
        await whole.close();
      }
      await rename(`${target}.tmp`, target);
    }
  }

  #task(index: number): PlannedTask {
    const task = this.#plan.tasks[index];
    if (task === undefined) throw new Error(`no task ${index} in the run of ${this.#plan.sandboxId}`);
    return task;
  }
}
