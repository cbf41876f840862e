import type { Aido, Reaper } from "@aido/sdk";
import type { PublicAddress } from "./access/public-address.ts";
import type { Activity } from "./activity/activity.ts";
import type { DeferredAgents } from "./agent/deferred-agents.ts";
import type { Driver } from "./driver/driver.ts";
import type { EvidenceLog } from "./evidence/evidence-log.ts";
import type { FileService } from "./files/file-service.ts";
import type { HistoryService } from "./history/history-service.ts";
import type { TrackedExecs } from "./history/tracked-execs.ts";
import type { ImageService } from "./image/image-service.ts";
import type { DeferredBatches, DeferredJobs } from "./job/deferred-jobs.ts";
import type { DeferredWorkflows } from "./job/deferred-workflows.ts";
import type { Metrics } from "./metrics/read-metrics.ts";
import type { PoolSpec } from "./pool/parse-pool.ts";
import type { PoolStore } from "./pool/pool-store.ts";
import type { WarmPool } from "./pool/warm-pool.ts";
import type { PortService } from "./ports/port-service.ts";
import type { RunService } from "./run/run-service.ts";
import type { SandboxService } from "./sandbox/sandbox-service.ts";
import type { SnapshotService } from "./snapshot/snapshot-service.ts";
import type { SshService } from "./ssh/ssh-service.ts";
import type { Store } from "./store/store.ts";
import type { Supervisors } from "./supervisor/supervisors.ts";
import type { Workers } from "./swarm/workers/workers.ts";
import type { TierGc } from "./tier/deferred-gc.ts";
import type { WorkspaceService } from "./workspace/workspace-service.ts";

export interface CoreParts {
  readonly sandboxes: SandboxService;
  readonly execs: TrackedExecs;
  readonly files: FileService;
  readonly history: HistoryService;
  readonly images: ImageService;
  readonly snapshots: SnapshotService;
  readonly evidence: EvidenceLog;
  readonly runs: RunService;
  readonly agents: DeferredAgents;
  readonly ports: PortService;
  readonly activity: Activity;
  readonly jobs: DeferredJobs;
  readonly reaper: Reaper;
  readonly ssh: SshService;
  readonly gc: TierGc;
  readonly workspaces: WorkspaceService;
  readonly supervisors: Supervisors;
  readonly presence: { close(): Promise<void> };
  readonly openPool: (specs: readonly PoolSpec[], store: PoolStore) => Promise<WarmPool>;
  readonly recover: (sandboxId: string) => Promise<void>;
  readonly openWorkers: () => Promise<Workers>;
  readonly driver: Driver;
  readonly store: Store;
  readonly address: PublicAddress;
}

/** Aido in this process. Whoever makes the parts hands them over: closing ends them all, and no sandbox. */
export class CoreAido implements Aido {
  readonly sandboxes: SandboxService;
  readonly execs: TrackedExecs;
  readonly files: FileService;
  readonly history: HistoryService;
  readonly images: ImageService;
  readonly snapshots: SnapshotService;
  readonly evidence: EvidenceLog;
  readonly runs: RunService;
  readonly agents: DeferredAgents;
  readonly ports: PortService;
  readonly activity: Activity;
  readonly jobs: DeferredJobs;
  readonly batches: DeferredBatches;
  readonly workflows: DeferredWorkflows;
  readonly reaper: Reaper;
  readonly ssh: SshService;
  readonly gc: TierGc;
  readonly workspaces: WorkspaceService;
  readonly driver: Driver;
  readonly store: Store;
  readonly address: PublicAddress;
  readonly #supervisors: Supervisors;
  readonly #presence: CoreParts["presence"];
  readonly #recover: (sandboxId: string) => Promise<void>;
  readonly #openPool: CoreParts["openPool"];
  readonly #openWorkers: CoreParts["openWorkers"];
  #closing: Promise<void> | undefined;

  constructor(parts: CoreParts) {
    this.sandboxes = parts.sandboxes;
    this.execs = parts.execs;
    this.files = parts.files;
    this.history = parts.history;
    this.images = parts.images;
    this.snapshots = parts.snapshots;
    this.evidence = parts.evidence;
    this.runs = parts.runs;
    this.agents = parts.agents;
    this.ports = parts.ports;
    this.activity = parts.activity;
    this.jobs = parts.jobs;
    this.batches = parts.jobs.batches;
    this.workflows = parts.jobs.workflows;
    this.reaper = parts.reaper;
    this.ssh = parts.ssh;
    this.gc = parts.gc;
    this.workspaces = parts.workspaces;
    this.driver = parts.driver;
    this.store = parts.store;
    this.address = parts.address;
    this.#supervisors = parts.supervisors;
    this.#presence = parts.presence;
    this.#recover = parts.recover;
    this.#openPool = parts.openPool;
    this.#openWorkers = parts.openWorkers;
  }

  /** After a restart: goes on recording what runs in a sandbox. */
  recover(sandboxId: string): Promise<void> {
    return this.#recover(sandboxId);
  }

  /** Sandboxes are taken from it from now on. Whoever opens it closes it, before this. */
  openPool(specs: readonly PoolSpec[], store: PoolStore): Promise<WarmPool> {
    return this.#openPool(specs, store);
  }

  /** The workers of swarms; they end with nothing of this process. */
  openWorkers(): Promise<Workers> {
    return this.#openWorkers();
  }

  async metrics(): Promise<Metrics> {
    // Jobs of a process that has died are counted by whoever looks first.
    await this.jobs.recover();
    const { readMetrics } = await import("./metrics/read-metrics.ts");
    return await readMetrics(this.store, this.activity);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** From what uses others to what is used, so that nothing said last is lost. */
  async #close(): Promise<void> {
    try {
      await this.jobs.close();
      await this.agents.close();
      await this.runs.close();
      await this.execs.close();
      await this.sandboxes.close();
      await this.activity.close();
    } finally {
      this.#supervisors.close();
      await this.driver.close();
      await this.evidence.flush();
      await this.#presence.close();
      await this.store.close();
    }
  }
}
