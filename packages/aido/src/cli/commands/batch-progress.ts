import { setTimeout as sleep } from "node:timers/promises";
import type { Batches } from "@aido/sdk";
import type { BatchInfo } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { note } from "../output/print.ts";

const REDRAW_MS = 200;
const LINE_MS = 1000;

/** Shows how far a batch is: one line drawn again on a terminal, a plain line for each change elsewhere. */
export class BatchProgress {
  readonly #context: CliContext;
  readonly #batches: Batches;
  readonly #id: string;
  readonly #stopping = new AbortController();
  readonly #watching: Promise<void>;
  #last = "";

  /** `everyMs`: between two looks. */
  constructor(context: CliContext, batches: Batches, id: string, everyMs?: number) {
    this.#context = context;
    this.#batches = batches;
    this.#id = id;
    const { quiet, json } = context.globals;
    this.#watching = quiet || json ? Promise.resolve() : this.#watch(everyMs);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#watching;
    this.#context.progress.clear();
  }

  async #watch(everyMs?: number): Promise<void> {
    const { isTerminal } = this.#context.stderr;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await sleep(everyMs ?? (isTerminal ? REDRAW_MS : LINE_MS), undefined, { signal }).catch(
        () => undefined,
      );
      if (signal.aborted) return;
      // Not begun yet, or just collected by somebody else: there is nothing to show.
      const batch = await this.#batches.get(this.#id).catch(() => undefined);
      if (batch !== undefined) await this.#show(toText(batch), isTerminal);
    }
  }

  async #show(text: string, isTerminal: boolean): Promise<void> {
    if (text === this.#last) return;
    this.#last = text;
    if (isTerminal) this.#context.progress.show(text);
    else await note(this.#context, text);
  }
}

function toText({ kind, ended, count, failed }: BatchInfo): string {
  return `batch ${kind}: ${ended} of ${count} done${failed === 0 ? "" : `, ${failed} failed`}`;
}
