import { mkdirSync } from "node:fs";
import { userInfo } from "node:os";
import { chooseDriver, whyDockerIsSilent } from "./compose/choose-driver.ts";
import type { Config } from "./config/config.ts";
import type { DriverChoice } from "./config/settings.ts";
import type { CoreAido } from "./core/core-aido.ts";
import type { Driver } from "./core/driver/driver.ts";
import type { Logger } from "./core/logger.ts";
import type { Store } from "./core/store/store.ts";

export interface OpenOptions {
  readonly config: Config;
  readonly logger: Logger;
  /** Told about long steps that belong to no request, such as setting up a driver. */
  readonly onProgress?: ((step: string) => void) | undefined;
  /** Who acts, for the evidence; this process's user by default. */
  readonly actor?: string | undefined;
}

/** Aido in this process. Knows every adapter and loads only those that are used. */
export async function openAido(options: OpenOptions): Promise<CoreAido> {
  const { config } = options;
  const { DataDir } = await import("./core/data-dir.ts");
  const dataDir = new DataDir(config.dataDir);
  // The engine answers while the store is opened.
  const silence = config.driver === "auto" ? whyDockerIsSilent(config) : Promise.resolve(undefined);
  silence.catch(() => undefined);
  const store = await openStore(dataDir.database);
  try {
    const driver = await chooseDriver({ config, dataDir, onProgress: options.onProgress }, silence);
    return await wire({ ...options, actor: options.actor ?? userName() }, { driver, store, dataDir });
  } catch (thrown) {
    await store.close();
    throw thrown;
  }
}

/** Aido as configured for this process, for programs that use it as a library. */
export async function openDefaultAido(
  options: { dataDir?: string; driver?: DriverChoice } = {},
): Promise<CoreAido> {
  const { loadProcessConfig } = await import("./config/process-config.ts");
  const { makeLogger } = await import("./log/make-logger.ts");
  const { config } = loadProcessConfig({ flags: options });
  return await openAido({ config, logger: makeLogger(config) });
}

async function openStore(file: string): Promise<Store> {
  const { SqliteStore } = await import("./stores/sqlite/sqlite-store.ts");
  return new SqliteStore(file);
}

async function wire(
  { config, logger, actor }: OpenOptions & { actor: string },
  adapters: { driver: Driver; store: Store; dataDir: import("./core/data-dir.ts").DataDir },
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
    nanoid,
  ] = await Promise.all([
    import("./core/core-aido.ts"),
    import("./core/system-clock.ts"),
    import("./core/ids.ts"),
    import("./core/process-identity.ts"),
    import("./core/evidence/evidence-log.ts"),
    import("./core/supervisor/supervisors.ts"),
    import("./core/sandbox/sandbox-service.ts"),
    import("./core/exec/exec-service.ts"),
    import("./core/files/file-service.ts"),
    import("./core/run/run-service.ts"),
    import("./core/history/history-service.ts"),
    import("./core/history/tracked-execs.ts"),
    import("nanoid"),
  ]);
  const { driver, store, dataDir } = adapters;
  mkdirSync(dataDir.sandboxes, { recursive: true, mode: 0o700 });
  const clock = new clocks.SystemClock();
  const newId = nanoid.customAlphabet(ids.ID_ALPHABET, ids.ID_LENGTH);
  const processes = new identity.LinuxProcessIdentity(newId());
  const evidence = new evidences.EvidenceLog({ heads: store.evidence, dataDir, clock, logger, actor });
  const supervisors = new supervisions.Supervisors({ driver, clock, logger });
  const shared = { driver, store, dataDir, evidence, supervisors, clock, logger, newId };
  const sandboxService = new sandboxes.SandboxService({
    ...shared,
    processes,
    profile: config.profile,
    onCreated: (record) => (record.history ? history.begin(record) : Promise.resolve()),
    overrides: { image: config.defaultImage, limits: config.limits, ttlMs: config.ttlMs },
  });
  const execService = new execs.ExecService({ ...shared, sandboxes: sandboxService });
  const history = new histories.HistoryService({ ...shared, sandboxes: sandboxService });
  return new core.CoreAido({
    sandboxes: sandboxService,
    execs: new tracking.TrackedExecs(execService, history, sandboxService),
    history,
    files: new files.FileService({ ...shared, sandboxes: sandboxService }),
    evidence,
    runs: new runs.RunService({
      ...shared,
      lifecycle: sandboxService,
      resolver: sandboxService,
      sandboxes: sandboxService,
      execs: execService,
      identity: processes,
    }),
    supervisors,
    driver,
    store,
  });
}

/** A user without an entry in the password file still has a number. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid:${process.getuid?.() ?? "unknown"}`;
  }
}
