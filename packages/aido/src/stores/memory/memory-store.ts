import type { ExecPage } from "@aido/sdk";
import { AidoError, type RunStatus } from "@aido/sdk/protocol";
import type {
  Claim,
  ClaimStore,
  EvidenceHead,
  EvidenceHeads,
  ExecEnd,
  ExecRecord,
  ExecStore,
  RunRow,
  RunStore,
  Store,
} from "../../core/store/store.ts";
import { MemoryAgentSessions } from "./memory-agent-sessions.ts";
import { MemoryBatches } from "./memory-batches.ts";
import { MemoryCounters } from "./memory-counters.ts";
import { MemoryIdempotency } from "./memory-idempotency.ts";
import { MemoryJobs } from "./memory-jobs.ts";
import { MemoryLeases } from "./memory-leases.ts";
import { MemoryPool } from "./memory-pool.ts";
import { MemorySandboxes } from "./memory-sandboxes.ts";
import { MemorySshKeys } from "./memory-ssh-keys.ts";
import { MemoryWorkflows } from "./memory-workflows.ts";
import { MemoryWorkspaces } from "./memory-workspaces.ts";

/** Records of one process, gone with it. For tests and throw-away use. */
export class MemoryStore implements Store {
  readonly sandboxes: MemorySandboxes;
  readonly execs: MemoryExecs;
  readonly runs: MemoryRuns;
  readonly claims = new MemoryClaims();
  readonly agentSessions: MemoryAgentSessions;
  readonly leases = new MemoryLeases();
  readonly evidence = new MemoryEvidenceHeads();
  readonly counters = new MemoryCounters();
  readonly jobs = new MemoryJobs(this.counters);
  readonly batches = new MemoryBatches(this.counters);
  readonly workflows = new MemoryWorkflows(this.counters);
  readonly workspaces = new MemoryWorkspaces();
  readonly idempotency = new MemoryIdempotency();
  readonly pool: MemoryPool;
  readonly sshKeys: MemorySshKeys;

  constructor() {
    this.sandboxes = new MemorySandboxes(this.counters, (id) => {
      this.execs.drop(id);
      this.runs.drop(id);
      this.claims.drop(id);
      this.agentSessions.drop(id);
      this.sshKeys.drop(id);
    });
    this.pool = new MemoryPool(this.sandboxes);
    const exists = (id: string) => this.sandboxes.has(id);
    this.execs = new MemoryExecs(exists);
    this.runs = new MemoryRuns(exists);
    this.agentSessions = new MemoryAgentSessions(exists);
    this.sshKeys = new MemorySshKeys(exists);
  }

  async close(): Promise<void> {}
}

type Exists = (sandboxId: string) => boolean;

class MemoryExecs implements ExecStore {
  readonly #records = new Map<string, ExecRecord[]>();
  readonly #exists: Exists;

  constructor(exists: Exists) {
    this.#exists = exists;
  }

  async insert(record: ExecRecord): Promise<boolean> {
    if (!this.#exists(record.sandboxId)) throw notFound(record.sandboxId);
    const execs = this.#records.get(record.sandboxId) ?? [];
    if (execs.some((exec) => exec.id === record.id)) return false;
    this.#records.set(record.sandboxId, [structuredClone(record), ...execs]);
    return true;
  }

  async get(sandboxId: string, execId: string): Promise<ExecRecord | undefined> {
    return structuredClone(this.#records.get(sandboxId)?.find((exec) => exec.id === execId));
  }

  async list(sandboxId: string, { limit = 1000, before }: ExecPage = {}): Promise<readonly ExecRecord[]> {
    const execs = this.#records.get(sandboxId) ?? [];
    const at = before === undefined ? -1 : execs.findIndex(({ id }) => id === before);
    if (before !== undefined && at < 0) return [];
    return structuredClone(execs.slice(at + 1, at + 1 + limit));
  }

  async running(sandboxId: string): Promise<readonly ExecRecord[]> {
    return (await this.list(sandboxId, { limit: Number.MAX_SAFE_INTEGER })).filter(
      (exec) => exec.status === "running",
    );
  }

  async unrecorded(sandboxId: string): Promise<readonly ExecRecord[]> {
    const execs = await this.list(sandboxId, { limit: Number.MAX_SAFE_INTEGER });
    return execs.filter((exec) => exec.unrecorded).reverse();
  }

  async markRecorded(execs: readonly Pick<ExecRecord, "sandboxId" | "id">[]): Promise<void> {
    for (const { sandboxId, id } of execs) {
      const exec = this.#records.get(sandboxId)?.find((candidate) => candidate.id === id);
      if (exec !== undefined) exec.unrecorded = false;
    }
  }

  async countRunning(): Promise<number> {
    return [...this.#records.values()].flat().filter((exec) => exec.status === "running").length;
  }

  async lastEnd(sandboxId: string): Promise<Date | undefined> {
    const ends = (this.#records.get(sandboxId) ?? []).flatMap(({ endedAt }) => endedAt?.getTime() ?? []);
    return ends.length === 0 ? undefined : new Date(Math.max(...ends));
  }

  async end(sandboxId: string, execId: string, end: ExecEnd): Promise<boolean> {
    const exec = this.#records.get(sandboxId)?.find((candidate) => candidate.id === execId);
    if (exec?.status !== "running") return false;
    Object.assign(exec, structuredClone(end));
    return true;
  }

  async removeAll(sandboxId: string): Promise<void> {
    this.drop(sandboxId);
  }

  drop(sandboxId: string): void {
    this.#records.delete(sandboxId);
  }
}

class MemoryRuns implements RunStore {
  readonly #runs = new Map<string, RunRow>();
  readonly #exists: Exists;

  constructor(exists: Exists) {
    this.#exists = exists;
  }

  async put(run: RunRow): Promise<void> {
    if (!this.#exists(run.sandboxId)) throw notFound(run.sandboxId);
    this.#runs.set(run.sandboxId, structuredClone(run));
  }

  async get(sandboxId: string): Promise<RunRow | undefined> {
    return structuredClone(this.#runs.get(sandboxId));
  }

  async transition(
    sandboxId: string,
    from: RunStatus,
    to: RunStatus,
    patch: Partial<RunRow> = {},
  ): Promise<boolean> {
    const run = this.#runs.get(sandboxId);
    if (run?.status !== from) return false;
    Object.assign(run, structuredClone(patch), { status: to });
    return true;
  }

  async remove(sandboxId: string): Promise<void> {
    this.drop(sandboxId);
  }

  drop(sandboxId: string): void {
    this.#runs.delete(sandboxId);
  }
}

class MemoryClaims implements ClaimStore {
  readonly #claims = new Map<string, Claim>();

  async take(claim: Claim, now: Date, replacing?: Claim): Promise<Claim | undefined> {
    const held = this.#claims.get(claim.sandboxId);
    if (held !== undefined && held.until > now && held.holder !== replacing?.holder) return { ...held };
    this.#claims.set(claim.sandboxId, { ...claim });
    return undefined;
  }

  async renew(sandboxId: string, holder: string, until: Date): Promise<boolean> {
    const held = this.#claims.get(sandboxId);
    if (held?.holder !== holder) return false;
    this.#claims.set(sandboxId, { ...held, until });
    return true;
  }

  async release(sandboxId: string, holder: string): Promise<void> {
    if (this.#claims.get(sandboxId)?.holder === holder) this.#claims.delete(sandboxId);
  }

  async get(sandboxId: string): Promise<Claim | undefined> {
    return this.#claims.get(sandboxId);
  }

  async list(): Promise<readonly Claim[]> {
    return [...this.#claims.values()].sort((a, b) => (a.sandboxId < b.sandboxId ? -1 : 1));
  }

  drop(sandboxId: string): void {
    this.#claims.delete(sandboxId);
  }
}

class MemoryEvidenceHeads implements EvidenceHeads {
  readonly #heads = new Map<string, EvidenceHead>();

  async get(sandboxId: string): Promise<EvidenceHead | undefined> {
    return this.#heads.get(sandboxId);
  }

  async advance(
    sandboxId: string,
    append: (head: EvidenceHead | undefined) => EvidenceHead | undefined,
  ): Promise<void> {
    const head = append(this.#heads.get(sandboxId));
    if (head !== undefined) this.#heads.set(sandboxId, head);
  }

  async ids(): Promise<readonly string[]> {
    return [...this.#heads.keys()].sort();
  }
}

function notFound(sandboxId: string): AidoError {
  return new AidoError("CONTAINER_NOT_FOUND", `Sandbox ${sandboxId} does not exist`, {
    details: { id: sandboxId },
  });
}
