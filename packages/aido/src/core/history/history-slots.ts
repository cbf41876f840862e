import { join } from "node:path";
import type { DataDir } from "../data-dir.ts";
import type { SandboxRecord } from "../store/store.ts";
import type { Supervisors } from "../supervisor/supervisors.ts";
import { GitRepository } from "./git-repository.ts";
import { SandboxHistory } from "./sandbox-history.ts";
import { supervisorWorkspace, type Workspace } from "./supervisor-workspace.ts";
import { WatchBudget } from "./watch-budget.ts";

/** Workspaces beyond these are put away, the longest unused first; their state is kept on disk. */
const MAX_SLOTS = 64;
const MAX_KNOWN_ENTRIES = 400_000;

interface Slot {
  /** As it was last given: a sandbox that was started anew has another token. */
  record: SandboxRecord;
  readonly history: SandboxHistory;
  readonly workspace: Workspace;
  /** Work on one workspace is done in turns; readers wait for what was asked before them. */
  tail: Promise<void>;
  pending: number;
}

export interface HistorySlotsDeps {
  supervisors: Pick<Supervisors, "get">;
  dataDir: DataDir;
  /** Of each history. */
  maxBytes: number;
}

/** The histories this process works with. */
export class HistorySlots {
  readonly #deps: HistorySlotsDeps;
  readonly #slots = new Map<string, Slot>();
  readonly #budget = new WatchBudget();

  constructor(deps: HistorySlotsDeps) {
    this.#deps = deps;
  }

  get(record: SandboxRecord): Slot {
    const slot = this.#slots.get(record.id) ?? this.#make(record);
    slot.record = record;
    // The order of the map is the order of use.
    this.#slots.delete(record.id);
    this.#slots.set(record.id, slot);
    return slot;
  }

  /** True for one with a first entry. */
  hasBegun(sandboxId: string): boolean {
    return this.#slots.get(sandboxId)?.history.hasBegun === true;
  }

  /** True for one with a first entry and with nothing left to do. */
  isIdle(sandboxId: string): boolean {
    return this.hasBegun(sandboxId) && this.#slots.get(sandboxId)?.pending === 0;
  }

  settled(sandboxId: string): Promise<void> | undefined {
    const slot = this.#slots.get(sandboxId);
    return slot === undefined || slot.pending === 0 ? undefined : slot.tail;
  }

  inTurn<Result>(
    record: SandboxRecord,
    work: (history: SandboxHistory, workspace: Workspace) => Promise<Result>,
  ): Promise<Result> {
    const slot = this.get(record);
    slot.pending += 1;
    const result = slot.tail.then(() => work(slot.history, slot.workspace));
    const done = () => {
      slot.pending -= 1;
      this.#putAway();
    };
    slot.tail = result.then(done, done);
    return result;
  }

  async close(): Promise<void> {
    const slots = [...this.#slots.values()];
    await Promise.all(slots.map((slot) => slot.tail));
    for (const slot of slots) slot.history.close();
    this.#slots.clear();
  }

  #make(record: SandboxRecord): Slot {
    const { dataDir, maxBytes } = this.#deps;
    const repository = new GitRepository(join(dataDir.sandbox(record.id), "history.git"), maxBytes);
    const workspace = supervisorWorkspace(
      () => this.#deps.supervisors.get(slot.record),
      () => slot.record.workdir,
    );
    const history = new SandboxHistory(repository, workspace, this.#budget);
    const slot: Slot = { record, history, workspace, tail: Promise.resolve(), pending: 0 };
    return slot;
  }

  #putAway(): void {
    let entries = 0;
    for (const { history } of this.#slots.values()) entries += history.known.size;
    for (const [id, slot] of this.#slots) {
      if (this.#slots.size <= MAX_SLOTS && entries <= MAX_KNOWN_ENTRIES) return;
      if (slot.pending > 0 || this.#slots.size === 1) continue;
      entries -= slot.history.known.size;
      slot.history.close();
      this.#slots.delete(id);
    }
  }
}
