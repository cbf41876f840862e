import { readFile } from "node:fs/promises";
import type { RunRecord, RunSpec, RunStatus, RunSummary } from "@aido/sdk/protocol";
import type { RunRow } from "../store/store.ts";
import type { RunDeps } from "./run-deps.ts";
import { RUN_ACTIVE, RUN_STATE_LABEL } from "./run-labels.ts";
import { RunLayout } from "./run-layout.ts";
import { RunOwner } from "./run-owner.ts";
import { writeJson } from "./write-atomically.ts";

/** What is written down about runs: `run.json`, `summary.json`, the spec, the store's row and who owns it. */
export class RunJournal {
  readonly #deps: RunDeps;

  constructor(deps: RunDeps) {
    this.#deps = deps;
  }

  layout(sandboxId: string): RunLayout {
    return new RunLayout(this.#deps.dataDir, sandboxId);
  }

  owner(sandboxId: string): RunOwner {
    return new RunOwner(this.layout(sandboxId).owners, this.#deps.identity, this.#deps.clock);
  }

  /** Whether the sandbox is there and its driver is the one this process has. */
  async isOurs(sandboxId: string): Promise<boolean> {
    const sandbox = await this.#deps.store.sandboxes.get(sandboxId);
    return sandbox !== undefined && sandbox.state !== "deleted" && sandbox.driver === this.#deps.driver.name;
  }

  async row(sandboxId: string): Promise<RunRow | undefined> {
    return await this.#deps.store.runs.get(sandboxId);
  }

  async spec(sandboxId: string): Promise<RunSpec> {
    return JSON.parse(await readFile(this.layout(sandboxId).spec, "utf8")) as RunSpec;
  }

  async record(sandboxId: string): Promise<RunRecord> {
    return JSON.parse(await readFile(this.layout(sandboxId).record, "utf8")) as RunRecord;
  }

  async writeRecord(record: RunRecord): Promise<void> {
    await writeJson(this.layout(record.id).record, record);
  }

  async summary(sandboxId: string): Promise<RunSummary | undefined> {
    try {
      return JSON.parse(await readFile(this.layout(sandboxId).summary, "utf8")) as RunSummary;
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw thrown;
    }
  }

  /** Found by recovery from here on, whatever becomes of this process. */
  async open(row: RunRow, from: RunStatus, labels: Readonly<Record<string, string>> = {}): Promise<boolean> {
    await this.mark(row.sandboxId, { ...labels, ...RUN_ACTIVE });
    return await this.#deps.store.runs.transition(row.sandboxId, from, "running", row);
  }

  async close(sandboxId: string, status: RunStatus, completedAt: Date): Promise<void> {
    await this.#deps.store.runs.transition(sandboxId, "running", status, { completedAt });
    await this.mark(sandboxId, { [RUN_STATE_LABEL]: "ended" });
  }

  async mark(sandboxId: string, labels: Readonly<Record<string, string>>): Promise<void> {
    const { sandboxes } = this.#deps.store;
    const sandbox = await sandboxes.get(sandboxId);
    if (sandbox === undefined || sandbox.state === "deleted") return;
    await sandboxes.update(sandboxId, { labels: { ...sandbox.labels, ...labels } });
  }
}
