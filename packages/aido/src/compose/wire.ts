import { mkdirSync } from "node:fs";
import type { CreateSandbox } from "@aido/sdk/protocol";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { CoreAido } from "../core/core-aido.ts";
import type { DataDir } from "../core/data-dir.ts";
import type { Driver, DriverCapabilities } from "../core/driver/driver.ts";
import type { Logger } from "../core/logger.ts";
import type { SandboxPool } from "../core/sandbox/sandbox-pool.ts";
import type { SandboxResolver } from "../core/sandbox/sandbox-resolver.ts";
import type { SandboxRecord, Store } from "../core/store/store.ts";

export interface Adapters {
  readonly driver: Driver;
  readonly store: Store;
  readonly dataDir: DataDir;
}

/** Core's services on a driver and a store. */
export async function wire(
  {
    config,
    logger,
    actor,
    clock: ownClock,
    capabilities,
  }: {
    config: Config;
    logger: Logger;
    actor: string;
    clock?: Clock | undefined;
    /** When they were asked for already. */
    capabilities?: Promise<DriverCapabilities> | undefined;
  },
  { driver, store, dataDir }: Adapters,
): Promise<CoreAido> {
  const [
    core,
    clocks,
    ids,
    identity,
    evidences,
    supervisions,
    sandboxes,
    execs,
    files,
    runs,
    histories,
    tracking,
    ports,
    addresses,
    activities,
    jobs,
    reapers,
    images,
    bases,
    agencies,
    ssh,
    endpoints,
    objects,
    snapshots,
    collections,
    stored,
    unchecked,
    workspaces,
    accesses,
    keepers,
    nanoid,
  ] = await Promise.all([
    import("../core/core-aido.ts"),
    import("../core/system-clock.ts"),
    import("../core/ids.ts"),
    import("../core/process-identity.ts"),
    import("../core/evidence/evidence-log.ts"),
    import("../core/supervisor/supervisors.ts"),
    import("../core/sandbox/sandbox-service.ts"),
    import("../core/exec/exec-service.ts"),
    import("../core/files/file-service.ts"),
    import("../core/run/run-service.ts"),
    import("../core/history/history-service.ts"),
    import("../core/history/tracked-execs.ts"),
    import("../core/ports/port-service.ts"),
    import("../core/access/public-address.ts"),
    import("../core/activity/activity.ts"),
    import("../core/job/deferred-jobs.ts"),
    import("../core/reaper/reaper.ts"),
    import("../core/image/image-service.ts"),
    import("../core/image/base-rule.ts"),
    import("../core/agent/deferred-agents.ts"),
    import("../core/ssh/ssh-service.ts"),
    import("../core/ssh/endpoint-file.ts"),
    import("./object-stores.ts"),
    import("../core/snapshot/snapshot-service.ts"),
    import("../core/tier/deferred-gc.ts"),
    import("../core/tier/stored-snapshots.ts"),
    import("../core/tier/unchecked-resolver.ts"),
    import("../core/workspace/workspace-service.ts"),
    import("./aws-access.ts"),
    import("../core/aws/credential-keeper.ts"),
    import("nanoid"),
  ]);
  mkdirSync(dataDir.sandboxes, { recursive: true, mode: 0o700 });
  const clock = ownClock ?? new clocks.SystemClock();
  const newId = nanoid.customAlphabet(ids.ID_ALPHABET, ids.ID_LENGTH);
  const processes = new identity.LinuxProcessIdentity(newId());
  const evidence = new evidences.EvidenceLog({ heads: store.evidence, dataDir, clock, logger, actor });
  const supervisors = new supervisions.Supervisors({ driver, clock, logger });
  const activity = new activities.Activity({ sandboxes: store.sandboxes, clock, logger });
  // Signatures are about the time that servers have, whatever ours is.
  const { stores, policy } = objects.makeObjectStores(config, new clocks.SystemClock());
  const snapshotsFor = (resolver: SandboxResolver, settled?: (id: string) => Promise<void> | undefined) =>
    new snapshots.SnapshotService({
      ...{ stores, supervisors, evidence, activity, clock, settled, sandboxes: resolver },
      ...{ prefix: policy.prefix, maxBytes: config.snapshot.maxBytes },
    });
  const tiers = {
    autoCommit: config.gc.autoCommit,
    snapshots: new stored.StoredSnapshots(
      () => snapshotsFor(new unchecked.UncheckedResolver(store.sandboxes)),
      policy.prefix !== undefined,
    ),
  };
  const shared = { driver, store, dataDir, evidence, supervisors, activity, clock, logger, newId, tiers };
  const access = accesses.makeAwsAccess(config, clock);
  const aws = new keepers.CredentialKeeper({ ...shared, access, sandboxes: store.sandboxes });
  const begin = (record: SandboxRecord) => (record.history ? history.begin(record) : Promise.resolve());
  let pool: SandboxPool | undefined;
  const { publicUrl: url, port } = config.serve;
  const address = new addresses.PublicAddress({ url, host: config.sidecar.publicHost, port });
  const sandboxService = new sandboxes.SandboxService({
    ...shared,
    aws,
    processes,
    capabilities,
    profile: config.profile,
    onCreated: begin,
    settled: (id) => history.settled(id),
    pool: () => pool,
    address,
    overrides: {
      image: config.defaultImage,
      limits: config.limits,
      maxWorkspaces: config.workspaces.max,
      ttlMs: config.ttlMs,
      idleTimeoutMs: config.idleTimeoutMs,
      sidecar: config.sidecar,
    },
  });
  const execService = new execs.ExecService({ ...shared, sandboxes: sandboxService });
  const history = new histories.HistoryService({ ...shared, sandboxes: sandboxService });
  const tracked = new tracking.TrackedExecs(execService, history, sandboxService);
  const agentParts = { ...shared, sandboxes: sandboxService, execs: tracked };
  const agents = new agencies.DeferredAgents(async () =>
    (await import("./open-agents.ts")).openAgents(config, agentParts),
  );
  const sshService = new ssh.SshService({
    ...shared,
    sandboxes: sandboxService,
    endpoint: new endpoints.EndpointFile(dataDir.sshEndpoint, processes),
    settled: (id) => history.settled(id),
  });
  const snapshotService = snapshotsFor(sandboxService, (id) => history.settled(id));
  const jobParts = {
    ...shared,
    config,
    processes,
    sandboxes: sandboxService,
    execs: tracked,
    agents,
    ssh: sshService,
    snapshots: snapshotService,
  };
  return new core.CoreAido({
    sandboxes: sandboxService,
    execs: tracked,
    jobs: new jobs.DeferredJobs(async () => (await import("./open-jobs.ts")).openJobs(jobParts)),
    agents,
    history,
    images: new images.ImageService({
      driver,
      mayStartFrom: bases.baseRule(config.images.bases),
      limits: config.images,
    }),
    snapshots: snapshotService,
    recover: async (sandboxId) => {
      await sandboxService.takeOver(sandboxId);
      await execService.recover(sandboxId);
    },
    openWorkers: async () => {
      const { SandboxWorkers } = await import("../core/swarm/workers/sandbox-workers.ts");
      return new SandboxWorkers({ ...shared, sandboxes: sandboxService, execs: execService });
    },
    openPool: async (specs, store) => {
      const { WarmPool } = await import("../core/pool/warm-pool.ts");
      const build = (request: CreateSandbox) => sandboxService.build(request);
      const warm = new WarmPool({ ...shared, processes, pool: store, build, begin }, specs);
      warm.start();
      pool = warm;
      return warm;
    },
    files: new files.FileService({
      ...shared,
      sandboxes: sandboxService,
      settled: (id) => history.settled(id),
    }),
    evidence,
    ports: new ports.PortService({ ...shared, sandboxes: sandboxService }),
    ssh: sshService,
    runs: new runs.RunService({
      ...shared,
      lifecycle: sandboxService,
      resolver: sandboxService,
      sandboxes: sandboxService,
      execs: execService,
      identity: processes,
    }),
    activity,
    reaper: new reapers.SandboxReaper({
      ...shared,
      sandboxes: sandboxService,
      runningExecs: (record) => execService.running(record),
      busyCpus: config.reaper.busyCpus,
      snapshot: config.reaper.snapshot
        ? async (record, signal) => {
            const { snapshotFirst } = await import("../core/reaper/snapshot-first.ts");
            await snapshotFirst(snapshotService, store.sandboxes)(record, signal);
          }
        : undefined,
    }),
    gc: new collections.DeferredGc(async () => {
      const { TierCollector } = await import("../core/tier/collector.ts");
      return new TierCollector({ ...shared, processes }, config.gc);
    }),
    workspaces: new workspaces.WorkspaceService({ ...shared, processes }, config.workspaces),
    supervisors,
    driver,
    store,
    address,
  });
}
