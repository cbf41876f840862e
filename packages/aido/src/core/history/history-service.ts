import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { History, HistoryEntry, HistoryFile } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import type { Clock } from "../clock.ts";
import type { DataDir } from "../data-dir.ts";
import type { EvidenceSink } from "../evidence/evidence-sink.ts";
import type { Logger } from "../logger.ts";
import type { SandboxResolver } from "../sandbox/sandbox-resolver.ts";
import type { SandboxRecord } from "../store/store.ts";
import type { Supervisors } from "../supervisor/supervisors.ts";
import { GitRepository } from "./git-repository.ts";
import { parsePatch, parseTree } from "./parse-git.ts";
import { writeBack } from "./rollback.ts";
import { INITIAL_ID, SandboxHistory } from "./sandbox-history.ts";
import { supervisorWorkspace } from "./supervisor-workspace.ts";

export interface HistoryDeps {
  supervisors: Supervisors;
  sandboxes: SandboxResolver;
  dataDir: DataDir;
  evidence: EvidenceSink;
  clock: Clock;
  logger: Logger;
}

const EXEC_MESSAGE = "Update files for sandbox execution";
const INITIAL_MESSAGE = "Initial commit";
const README = "# Sandbox workspace\n\nChanges here are recorded after each command.\n";
const DEFAULT_LIMIT = 10;

interface Slot {
  history: SandboxHistory;
  /** Work on one workspace is done in turns; readers wait for what was asked before them. */
  tail: Promise<void>;
}

/** The workspace after each exec, kept outside the sandbox. Works on images without git. */
export class HistoryService implements History {
  readonly #deps: HistoryDeps;
  readonly #slots = new Map<string, Slot>();

  constructor(deps: HistoryDeps) {
    this.#deps = deps;
  }

  /** A new workspace: its first entry holds a README, so that the history is never empty. */
  async begin(record: SandboxRecord): Promise<void> {
    await this.#inTurn(record, async (history) => {
      if (history.repository.head() !== undefined) return;
      const workspace = supervisorWorkspace(this.#deps.supervisors.get(record), record.workdir);
      await workspace.writeIfMissing("README.md", Buffer.from(README));
      await history.record({ execId: INITIAL_ID, at: this.#deps.clock.now(), message: INITIAL_MESSAGE });
    });
  }

  /** Called when an exec has ended. Never fails the exec: what cannot be recorded is logged and in the evidence. */
  recordExec(record: SandboxRecord, execId: string): Promise<void> {
    return this.#inTurn(record, async (history) => {
      const before = history.repository.head();
      await history.record({ execId, at: this.#deps.clock.now(), message: EXEC_MESSAGE });
      const after = history.repository.head();
      if (after !== before) {
        await this.#deps.evidence.append(record.id, "history.commit", { execId, commitId: after });
      }
    }).catch(async (thrown: unknown) => {
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      this.#deps.logger.warn(
        { event: "history.commit", sandboxId: record.id, execId, message },
        "not recorded",
      );
      await this.#deps.evidence.append(record.id, "history.failed", { execId, message });
    });
  }

  /** Resolves when everything recorded so far is in; the next exec starts after it. */
  async settled(sandboxId: string): Promise<void> {
    await this.#slots.get(sandboxId)?.tail;
  }

  async list(
    sandbox: string,
    options: { limit?: number; signal?: AbortSignal } = {},
  ): Promise<readonly HistoryEntry[]> {
    const record = await this.#resolve(sandbox);
    return this.#inTurn(record, (history) => history.list(options.limit ?? DEFAULT_LIMIT, options.signal));
  }

  async diff(
    sandbox: string,
    fromExecId: string,
    toExecId: string,
    signal?: AbortSignal,
  ): Promise<Readonly<Record<string, string>>> {
    const record = await this.#resolve(sandbox);
    return this.#inTurn(record, async (history) => {
      const range = [history.commitOf(fromExecId), history.commitOf(toExecId)];
      const options = { code: "GIT_DIFF_FAILED" as const, signal };
      const names = await history.repository.git(
        ["diff-tree", "-r", "-z", "--no-renames", "--name-only", ...range],
        options,
      );
      const patch = [
        "diff-tree",
        "-r",
        "-p",
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        ...range,
      ];
      const paths = names
        .toString("latin1")
        .split("\0")
        .filter((name) => name !== "");
      return parsePatch(paths, await history.repository.git(patch, options));
    });
  }

  async rollback(sandbox: string, execId: string, signal?: AbortSignal): Promise<HistoryEntry> {
    const record = await this.#deps.sandboxes.resolveRunning(sandbox);
    this.#refuseWithout(record);
    return this.#inTurn(record, async (history) => {
      const commit = history.commitOf(execId);
      const workspace = supervisorWorkspace(this.#deps.supervisors.get(record), record.workdir);
      // What changed since the last exec is kept as an entry of its own before it is overwritten.
      const keptAs = `before_${randomBytes(4).toString("hex")}`;
      await history.record({
        execId: keptAs,
        at: this.#deps.clock.now(),
        message: "Keep changes before a rollback",
      });
      await writeBack(history, commit, workspace, signal);
      const id = `rollback_${randomBytes(4).toString("hex")}`;
      await history.record({ execId: id, at: this.#deps.clock.now(), message: `Roll back to ${execId}` });
      await this.#deps.evidence.append(record.id, "history.rollback", {
        to: execId,
        commitId: commit,
        entry: id,
      });
      const [newest] = await history.list(1);
      if (newest === undefined) throw new AidoError("GIT_ROLLBACK_FAILED", "The rollback left no entry");
      return newest;
    });
  }

  async tree(sandbox: string, execId: string): Promise<readonly HistoryFile[]> {
    const record = await this.#resolve(sandbox);
    return this.#inTurn(record, async (history) => {
      const args = ["ls-tree", "-r", "-l", "-z", history.commitOf(execId)];
      const files = parseTree(await history.repository.git(args, { code: "GIT_HISTORY_FAILED" }));
      return files.map((file) => ({
        path: Buffer.from(file.path, "latin1").toString("utf8"),
        mode: file.mode,
        size: file.size ?? 0,
      }));
    });
  }

  async file(sandbox: string, execId: string, path: string): Promise<Uint8Array> {
    const record = await this.#resolve(sandbox);
    return this.#inTurn(record, async (history) => {
      const commit = history.commitOf(execId);
      const listing = await history.repository.git(["ls-tree", "-r", "-z", commit], {
        code: "GIT_HISTORY_FAILED",
      });
      const wanted = Buffer.from(path, "utf8").toString("latin1");
      const file = parseTree(listing).find((listed) => listed.path === wanted);
      if (file === undefined) {
        throw new AidoError("FILE_NOT_FOUND", `There was no file ${path} after ${execId}`, {
          details: { path },
        });
      }
      return history.repository.git(["cat-file", "blob", file.id], {
        code: "GIT_HISTORY_FAILED",
        maxBytes: 128 * 1024 * 1024,
      });
    });
  }

  /** The sandbox is gone: forget it. Its repository goes with its directory. */
  drop(sandboxId: string): void {
    this.#slots.delete(sandboxId);
  }

  async #resolve(sandbox: string): Promise<SandboxRecord> {
    const record = await this.#deps.sandboxes.resolve(sandbox);
    this.#refuseWithout(record);
    return record;
  }

  #refuseWithout(record: SandboxRecord): void {
    if (record.history) return;
    throw new AidoError("UNSUPPORTED", `Sandbox ${record.id} keeps no history`, {
      hint: "Create it with history to record its workspace.",
    });
  }

  #inTurn<Result>(
    record: SandboxRecord,
    work: (history: SandboxHistory) => Promise<Result>,
  ): Promise<Result> {
    let slot = this.#slots.get(record.id);
    if (slot === undefined) {
      const repository = new GitRepository(join(this.#deps.dataDir.sandbox(record.id), "history.git"));
      const reader = supervisorWorkspace(this.#deps.supervisors.get(record), record.workdir);
      slot = { history: new SandboxHistory(repository, reader), tail: Promise.resolve() };
      this.#slots.set(record.id, slot);
    }
    const { history } = slot;
    const result = slot.tail.then(() => work(history));
    slot.tail = result.then(
      () => undefined,
      () => undefined,
    );
    return result;
  }
}
