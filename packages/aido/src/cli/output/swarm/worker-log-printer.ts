import type { WorkerOutput } from "../../../core/swarm/workers/workers.ts";
import type { CliContext } from "../../context.ts";
import { usesColour } from "../uses-colour.ts";
import { entryJson, entryLines, type LogEntry, WorkerLog } from "./worker-log.ts";

/** Prints a worker's recorded output as lines for people, or one JSON value a line. */
export class WorkerLogPrinter {
  readonly #context: CliContext;
  readonly #toLines: (entry: LogEntry) => readonly string[];
  readonly #log = new WorkerLog();
  readonly #tail: number;
  /** The last lines before the reader has caught up, when only these are wanted. */
  #held: string[] | undefined;

  /** `tail`: so many lines of what was there before; all without it. */
  constructor(context: CliContext, tail: number | undefined) {
    this.#context = context;
    this.#tail = tail ?? 0;
    this.#held = tail === undefined ? undefined : [];
    const colour = usesColour(context.env, context.stdout);
    this.#toLines = context.globals.json
      ? (entry) => [entryJson(entry)]
      : (entry) => entryLines(entry, colour);
  }

  async print(output: WorkerOutput): Promise<void> {
    await this.#take(this.#log.push(output));
  }

  /** From now on everything is printed. */
  async catchUp(): Promise<void> {
    const lines = this.#held ?? [];
    this.#held = undefined;
    await this.#write(this.#tail === 0 ? [] : lines.slice(-this.#tail));
  }

  async end(): Promise<void> {
    await this.#take(this.#log.end());
    await this.catchUp();
  }

  async #take(entries: readonly LogEntry[]): Promise<void> {
    const lines = entries.flatMap(this.#toLines);
    if (this.#held === undefined) return await this.#write(lines);
    this.#held = [...this.#held, ...lines].slice(-Math.max(1, this.#tail));
  }

  async #write(lines: readonly string[]): Promise<void> {
    if (lines.length > 0) await this.#context.stdout.write(`${lines.join("\n")}\n`);
  }
}
