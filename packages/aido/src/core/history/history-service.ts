import { randomBytes } from "node:crypto";
import type { History, HistoryEntry, HistoryFile, HistoryPage } from "@aido/sdk";
import { AidoError, isAidoError } from "@aido/sdk/protocol";
import type { Clock } from "../clock.ts";
import type { DataDir } from "../data-dir.ts";
import type { EvidenceSink } from "../evidence/evidence-sink.ts";
import type { Logger } from "../logger.ts";
import type { SandboxResolver } from "../sandbox/sandbox-resolver.ts";
import type { SandboxRecord } from "../store/store.ts";
import type { Supervisors } from "../supervisor/supervisors.ts";
import { shownName } from "./git-names.ts";
import { HistorySlots } from "./history-slots.ts";
import { parsePatch, parseTree } from "./parse-git.ts";
import { writeBack } from "./rollback.ts";
import { INITIAL_ID, type SandboxHistory } from "./sandbox-history.ts";
import type { Workspace } from "./supervisor-workspace.ts";

export interface HistoryDeps {
  supervisors: Supervisors;
  sandboxes: SandboxResolver;
  dataDir: DataDir;
  evidence: EvidenceSink;
  clock: Clock;
  logger: Logger;
  /** How much a sandbox's history may take on the disk. */
  maxBytes: number;
  /** Resolves when what former processes left is recorded; undefined when it is. */
  caughtUp: (record: SandboxRecord) => Promise<void> | undefined;
}

const EXEC_MESSAGE = "Update files for sandbox execution";
const INITIAL_MESSAGE = "Initial commit";
const README = "# Sandbox workspace\n\nChanges here are recorded after each command.\n";
const DEFAULT_LIMIT = 10;
/** The commit has them all; the evidence outlives it. */
const MAX_TOLD_FILES = 100;
/** A sandbox may hold up its own tools; it must not hold up whoever uses it for longer. */
const RECORD_LIMIT_MS = 120_000;
const ROLLBACK_LIMIT_MS = 600_000;
/** As much as one answer has of an exec's output. */
const MAX_DIFF_BYTES = 8 * 1024 * 1024;
const MAX_TREE_BYTES = 32 * 1024 * 1024;
const PATCH = ["-p", "--no-ext-diff", "--no-textconv", "--no-color"];

/** The workspace after each exec, kept outside the sandbox. Works on images without git. */
export class HistoryService implements History {
  readonly #deps: HistoryDeps;
  readonly #slots: HistorySlots;

  constructor(deps: HistoryDeps) {
    this.#deps = deps;
    this.#slots = new HistorySlots(deps);
  }

  /** A new workspace: its first entry holds a README, so that the history is never empty. */
  begin(record: SandboxRecord): Promise<void> {
    return this.#slots.inTurn(record, (history, workspace) => this.#begin(history, workspace));
  }

  /** Before an exec: the first entry is there, and what was changed before is recorded. */
  async ready(record: SandboxRecord): Promise<void> {
    if (this.#slots.isIdle(record.id)) return;
    try {
      if (this.#slots.hasBegun(record.id)) await this.#slots.settled(record.id);
      else await this.begin(record);
    } catch (thrown) {
      await this.#notRecorded(record, INITIAL_ID, thrown);
    }
  }

  /**
   * Called when execs have ended: what changed is the first one's entry, for which the others stand too. Never fails an
   * exec: what cannot be recorded is logged and in the evidence. After a quiet end a watch need not be asked.
   */
  async recordExecs(
    record: SandboxRecord,
    execIds: readonly string[],
    { isQuiet = false }: { isQuiet?: boolean } = {},
  ): Promise<void> {
    try {
      await this.#slots.inTurn(record, async (history) => {
        await untilAnswered();
        // Of several processes that follow an exec, another may have recorded it.
        const [execId, ...others] = execIds.filter((id) => history.repository.tied(id) === undefined);
        if (execId === undefined) return;
        const signal = AbortSignal.timeout(RECORD_LIMIT_MS);
        const entry = { execId, at: this.#deps.clock.now(), message: EXEC_MESSAGE };
        const { commitId, isNew, files } = await history.record(entry, signal, isQuiet);
        for (const other of others) history.repository.tie(other, commitId);
        if (!isNew) return;
        const told = [...files].sort().slice(0, MAX_TOLD_FILES).map(shownName);
        const detail = { execId, commitId, files: told, filesTotal: files.size };
        await this.#deps.evidence.append(record.id, "history.commit", detail);
      });
    } catch (thrown) {
      for (const execId of execIds) await this.#notRecorded(record, execId, thrown);
    }
  }

  /** Resolves when everything asked for so far is done. */
  settled(sandboxId: string): Promise<void> | undefined {
    return this.#slots.settled(sandboxId);
  }

  /** True when the exec's end has been recorded. */
  isRecorded(record: SandboxRecord, execId: string): boolean {
    return this.#slots.get(record).history.repository.tied(execId) !== undefined;
  }

  async list(
    sandbox: string,
    { limit = DEFAULT_LIMIT, before, signal }: HistoryPage = {},
  ): Promise<readonly HistoryEntry[]> {
    const record = await this.#resolve(sandbox);
    return this.#slots.inTurn(record, (history) => history.list(limit, { before, signal }));
  }

  async diff(
    sandbox: string,
    fromExecId: string,
    toExecId: string,
    signal?: AbortSignal,
  ): Promise<Readonly<Record<string, string>>> {
    const record = await this.#resolve(sandbox);
    return this.#slots.inTurn(record, async (history) => {
      const from = history.commitOf(fromExecId);
      const to = history.commitOf(toExecId);
      const options = { code: "GIT_DIFF_FAILED" as const, signal, maxBytes: MAX_DIFF_BYTES };
      const common = ["diff-tree", "-r", "--no-renames"];
      const raw = await history.repository.git([...common, "-z", "--raw", from, to], options);
      if (raw.length === 0) return {};
      return parsePatch(raw, await history.repository.git([...common, ...PATCH, from, to], options));
    });
  }

  async rollback(sandbox: string, execId: string, signal?: AbortSignal): Promise<HistoryEntry> {
    const record = await this.#deps.sandboxes.resolveRunning(sandbox);
    await this.#readable(record);
    return this.#slots.inTurn(record, async (history, workspace) => {
      const to = history.commitOf(execId);
      // What is there could not be kept, so it is not overwritten.
      history.repository.size.mustHaveRoom();
      const limit = AbortSignal.timeout(ROLLBACK_LIMIT_MS);
      const either = signal === undefined ? limit : AbortSignal.any([signal, limit]);
      try {
        return await this.#rollback(record, history, workspace, { execId, to, signal: either });
      } catch (thrown) {
        signal?.throwIfAborted();
        if (isAidoError(thrown, "GIT_ROLLBACK_FAILED") || isAidoError(thrown, "CONTAINER_LOST")) throw thrown;
        const why = thrown instanceof Error ? thrown.message : String(thrown);
        throw new AidoError("GIT_ROLLBACK_FAILED", `The workspace could not be put back completely: ${why}`, {
          hint: "What it was before is in the history.",
          cause: thrown,
        });
      }
    });
  }

  async tree(sandbox: string, execId: string): Promise<readonly HistoryFile[]> {
    const record = await this.#resolve(sandbox);
    return this.#slots.inTurn(record, async (history) => {
      const args = ["ls-tree", "-r", "-l", "-z", history.commitOf(execId)];
      const options = { code: "GIT_HISTORY_FAILED" as const, maxBytes: MAX_TREE_BYTES };
      const files = parseTree(await history.repository.git(args, options));
      return files.map(({ path, mode, size }) => ({ path: shownName(path), mode, size: size ?? 0 }));
    });
  }

  async file(sandbox: string, execId: string, path: string): Promise<Uint8Array> {
    const record = await this.#resolve(sandbox);
    return this.#slots.inTurn(record, async (history) => {
      const options = { code: "GIT_HISTORY_FAILED" as const };
      const listing = await history.repository.git(
        ["ls-tree", "-r", "-z", history.commitOf(execId)],
        options,
      );
      const file = parseTree(listing).find((listed) => shownName(listed.path) === path);
      if (file === undefined) {
        const message = `There was no file ${JSON.stringify(path)} after ${execId}`;
        throw new AidoError("FILE_NOT_FOUND", message, { details: { path } });
      }
      return history.repository.git(["cat-file", "blob", file.id], options);
    });
  }

  /** Keeps what is known for the next process. Call it before the connections are closed. */
  close(): Promise<void> {
    return this.#slots.close();
  }

  async #begin(history: SandboxHistory, workspace: Workspace): Promise<void> {
    if (history.repository.head() !== undefined) return;
    const signal = AbortSignal.timeout(RECORD_LIMIT_MS);
    await workspace.writeIfMissing("README.md", Buffer.from(README), signal);
    const entry = { execId: INITIAL_ID, at: this.#deps.clock.now(), message: INITIAL_MESSAGE };
    await history.record(entry, signal);
  }

  async #rollback(
    record: SandboxRecord,
    history: SandboxHistory,
    workspace: Workspace,
    { execId, to, signal }: { execId: string; to: string; signal: AbortSignal | undefined },
  ): Promise<HistoryEntry> {
    const at = this.#deps.clock.now();
    // What changed since the last exec is kept as an entry of its own before it is overwritten.
    const before = { execId: newId("before"), at, message: "Keep changes before a rollback" };
    await history.record(before, signal);
    await writeBack(history, to, workspace, { at, signal });
    const entry = { execId: newId("rollback"), at, message: `Roll back to ${execId}` };
    const { commitId } = await history.record(entry, signal);
    await this.#deps.evidence.append(record.id, "history.rollback", { to: execId, commitId });
    const [newest] = await history.list(1, { signal });
    if (newest === undefined) throw new AidoError("GIT_ROLLBACK_FAILED", "The rollback left no entry");
    return newest;
  }

  async #notRecorded(record: SandboxRecord, execId: string, thrown: unknown): Promise<void> {
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    const line = { event: "history.failed", sandboxId: record.id, execId, message };
    this.#deps.logger.warn(line, "The workspace was not recorded");
    await this.#deps.evidence.append(record.id, "history.failed", { execId, message });
  }

  async #resolve(sandbox: string): Promise<SandboxRecord> {
    const record = await this.#deps.sandboxes.resolve(sandbox);
    await this.#readable(record);
    return record;
  }

  async #readable(record: SandboxRecord): Promise<void> {
    if (record.history) return await this.#deps.caughtUp(record);
    throw new AidoError("UNSUPPORTED", `Sandbox ${record.id} keeps no history`, {
      hint: "Only one that is made with it does: `aido create --history`.",
    });
  }
}

/** Whoever waits for the exec's end is answered in this turn of the loop; nobody has to wait for the look at its changes. */
function untilAnswered(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function newId(kind: string): string {
  return `${kind}_${randomBytes(4).toString("hex")}`;
}
