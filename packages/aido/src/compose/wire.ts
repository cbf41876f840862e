import type { CreateSandbox } from "@aido/sdk/protocol";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { CoreAido } from "../core/core-aido.ts";
import type { DataDir } from "../core/data-dir.ts";
import type { Driver, DriverCapabilities } from "../core/driver/driver.ts";
import type { LimitsOf } from "../core/limits/owner-quotas.ts";
import type { Logger } from "../core/logger.ts";
import type { SandboxPool } from "../core/sandbox/sandbox-pool.ts";
import type { SandboxRecord, Store } from "../core/store/store.ts";
import { makeDirectory } from "./make-directory.ts";

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
    limitsOf,
  }: {
    config: Config;
    logger: Logger;
    actor: string;
    clock?: Clock | undefined;
    /** When they were asked for already. */
    capabilities?: Promise<DriverCapabilities> | undefined;
    /** What each owner may have; everything when undefined. */
    limitsOf?: LimitsOf | undefined;
  },
  { driver, store, dataDir }: Adapters,
): Promise<CoreAido> {
  const [
    core,
    clocks,
    clockJumps,
    ids,
    identity,
    presences,
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
    workspaces,
    accesses,
    keepers,
    nanoid,
  ] = await Promise.all([
    import("../core/core-aido.ts"),
    import("../core/system-clock.ts"),
    import("../core/clock-jumps.ts"),
    import("../core/ids.ts"),
    import("../core/process-identity.ts"),
    import("../core/process-presence.ts"),
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
    import("../core/workspace/workspace-service.ts"),
    import("./aws-access.ts"),
    import("../core/aws/credential-keeper.ts"),
    import("nanoid"),
  ]);
  await makeDirectory(dataDir.sandboxes);
  const clock = ownClock ?? new clocks.SystemClock();
  const jumps = new clockJumps.ClockJumps(clock);
  const newId = nanoid.customAlphabet(ids.ID_ALPHABET, ids.ID_LENGTH);
  const processes = new identity.LinuxProcessIdentity(newId());
  const presence = new presences.ProcessPresence({ processes, leases: store.leases, clock, jumps });
  const evidence = new evidences.EvidenceLog({ heads: store.evidence, dataDir, clock, logger, actor });
  const supervisors = new supervisions.Supervisors({ driver, clock, logger });
  const activity = new activities.Activity({ sandboxes: store.sandboxes, clock, logger });
  // Signatures are about the time that servers have, whatever ours is.
  const { stores, policy } = objects.makeObjectStores(config, new clocks.SystemClock());
  const tiers = {
    autoCommit: config.gc.autoCommit,
    snapshots: new stored.StoredSnapshots(() => snapshotService, policy.prefix !== undefined),
  };
  const shared = {
    driver,
    store,
    dataDir,
    evidence,
    supervisors,
    activity,
    clock,
    jumps,
    logger,
    newId,
    tiers,
    pullSidecarImages: config.sidecar.pullImage,
  };
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
    capacity: config.operatorCapacity,
    limitsOf,
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
      sidecar: {
        ...config.sidecar,
        image: config.sidecar.isImageSet ? config.sidecar.image : undefined,
      },
    },
  });
  const execService = new execs.ExecService({ ...shared, sandboxes: sandboxService });
  const history = new histories.HistoryService({
    ...shared,
    sandboxes: sandboxService,
    maxBytes: config.history.maxBytes,
    caughtUp: (record) => tracked.caughtUp(record),
  });
  const tracked = new tracking.TrackedExecs({
    execs: execService,
    history,
    sandboxes: sandboxService,
    store,
  });
  const agentParts = { ...shared, sandboxes: sandboxService, execs: tracked };
  const agents = new agencies.DeferredAgents(async () =>
    (await import("./open-agents.ts")).openAgents(config, agentParts),
  );
  const sshService = new ssh.SshService({
    ...shared,
    sandboxes: sandboxService,
    endpoint: new endpoints.EndpointFile(dataDir.sshEndpoint, presence),
    settled: (id) => history.settled(id),
  });
  const snapshotService = new snapshots.SnapshotService({
    ...{ stores, store, supervisors, evidence, activity, clock, sandboxes: sandboxService },
    ...{ prefix: policy.prefix, maxBytes: config.snapshot.maxBytes },
    settled: (id) => history.settled(id),
  });
  const jobParts = {
    ...shared,
    config,
    presence,
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
      await tracked.recover(sandboxId);
    },
    openWorkers: async () => {
      const { SandboxWorkers } = await import("../core/swarm/workers/sandbox-workers.ts");
      return new SandboxWorkers({ ...shared, sandboxes: sandboxService, execs: execService });
    },
    openPool: async (specs, store) => {
      const { WarmPool } = await import("../core/pool/warm-pool.ts");
      const build = (request: CreateSandbox) => sandboxService.build(request);
      const warm = new WarmPool({ ...shared, processes, presence, pool: store, build, begin }, specs);
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
            return await snapshotFirst(snapshotService)(record, signal);
          }
        : undefined,
    }),
    gc: new collections.DeferredGc(async () => {
      const { TierCollector } = await import("../core/tier/collector.ts");
      return new TierCollector({ ...shared, processes }, config.gc);
    }),
    workspaces: new workspaces.WorkspaceService({ ...shared, processes }, config.workspaces),
    supervisors,
    presence,
    driver,
    store,
    address,
  });
}
