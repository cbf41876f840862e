import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Activity } from "../../src/core/activity/activity.ts";
import type { Clock } from "../../src/core/clock.ts";
import { DataDir } from "../../src/core/data-dir.ts";
import type { Driver } from "../../src/core/driver/driver.ts";
import type { EvidenceSink } from "../../src/core/evidence/evidence-sink.ts";
import { ExecService } from "../../src/core/exec/exec-service.ts";
import { FileService } from "../../src/core/files/file-service.ts";
import type { Logger } from "../../src/core/logger.ts";
import type { SandboxResolver } from "../../src/core/sandbox/sandbox-resolver.ts";
import type { SandboxRecord } from "../../src/core/store/store.ts";
import { Supervisors } from "../../src/core/supervisor/supervisors.ts";
import { SystemClock } from "../../src/core/system-clock.ts";
import { NO_TIER } from "../../src/core/tier/tier-fields.ts";
import {
  createFakeDriver,
  type FakeDriver,
  type FakeDriverOptions,
} from "../../src/drivers/fake/fake-driver.ts";
import { MemoryStore } from "../../src/stores/memory/memory-store.ts";

export { floodBytes } from "../../src/drivers/fake/fake-program.ts";
export type { FakeDriver };

export const SANDBOX = "sbx1";
const TOKEN = "ab".repeat(32);

export interface Told {
  event: string;
  detail: Readonly<Record<string, unknown>>;
}

/** The services of one process; several may share a store and a driver, as processes share a data directory. */
export interface Host {
  execs: ExecService;
  files: FileService;
  supervisors: Supervisors;
  /** As a clean exit. */
  close(): Promise<void>;
  /** As kill -9: connections are gone, nothing is written any more. */
  die(): void;
}

export class ExecBed<D extends Driver> implements AsyncDisposable {
  readonly driver: D;
  readonly clock: Clock;
  readonly store = new MemoryStore();
  readonly dataDir: DataDir;
  readonly told: Told[] = [];
  readonly logged: string[] = [];
  readonly host: Host;
  readonly #hosts: Host[] = [];
  #ids = 0;

  constructor(driver: D, clock: Clock, root: string) {
    this.driver = driver;
    this.clock = clock;
    this.dataDir = new DataDir(root);
    this.host = this.newHost();
  }

  get execs(): ExecService {
    return this.host.execs;
  }

  get files(): FileService {
    return this.host.files;
  }

  newHost(): Host {
    const { clock, driver, store, dataDir } = this;
    const logger = this.#logger();
    const supervisors = new Supervisors({ driver, clock, logger });
    const sandboxes: SandboxResolver = {
      resolve: async () => this.record(),
      resolveRunning: async () => this.record(),
    };
    const evidence: EvidenceSink = {
      append: async (_sandboxId, event, detail = {}) => {
        this.told.push({ event, detail });
      },
      appendSoon: (_sandboxId, event, detail) => {
        this.told.push({ event, detail });
      },
    };
    const newExecId = () => `exec_${++this.#ids}`;
    const execs = new ExecService({
      store,
      supervisors,
      sandboxes,
      dataDir,
      evidence,
      clock,
      logger,
      newExecId,
    });
    const activity = new Activity({ sandboxes: store.sandboxes, clock, logger });
    const files = new FileService({ supervisors, sandboxes, evidence, activity });
    const host = {
      execs,
      files,
      supervisors,
      close: async () => {
        await execs.close();
        await activity.close();
        supervisors.close();
      },
      die: () => supervisors.close(),
    };
    this.#hosts.push(host);
    return host;
  }

  async record(): Promise<SandboxRecord> {
    const record = await this.store.sandboxes.get(SANDBOX);
    if (record === undefined) throw new Error("the bed has no sandbox");
    return record;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const host of this.#hosts) await host.close();
    await this.driver.close();
    await rm(this.dataDir.root, { recursive: true, force: true });
  }

  #logger(): Logger {
    const log = (level: string) => (_fields: object, message: string) => {
      this.logged.push(`${level}: ${message}`);
    };
    const logger: Logger = {
      debug: log("debug"),
      info: log("info"),
      warn: log("warn"),
      error: log("error"),
      child: () => logger,
    };
    return logger;
  }
}

export async function bedOn<D extends Driver>(
  driver: D,
  options: {
    clock?: Clock;
    workdir?: string;
    outputBytes?: number;
    user?: { uid: number; gid: number };
  } = {},
): Promise<ExecBed<D>> {
  const clock = options.clock ?? new SystemClock();
  const workdir = options.workdir ?? "/work";
  const bed = new ExecBed(driver, clock, await mkdtemp(join(tmpdir(), "aido-exec-")));
  const limits = {
    cpus: 1,
    memoryBytes: 536_870_912,
    pids: 100,
    diskBytes: 0,
    openFiles: 1024,
    outputBytes: options.outputBytes ?? 0,
  };
  const common = { image: "busybox", isolation: "container", network: "none", limits } as const;
  await bed.store.sandboxes.insert({
    ...common,
    id: SANDBOX,
    name: undefined,
    profile: "aido",
    driver: driver.name,
    state: "running",
    endReason: undefined,
    containerId: "c1",
    workdir,
    user: undefined,
    env: { FROM_SANDBOX: "1" },
    imageEnv: {},
    privileged: false,
    history: false,
    permissions: undefined,
    labels: {},
    mounts: [],
    ttlMs: 0,
    supervisorToken: TOKEN,
    tokenHash: undefined,
    createdAt: clock.now(),
    startedAt: clock.now(),
    stoppedAt: undefined,
    expiresAt: undefined,
    idleTimeoutMs: 0,
    autoResume: false,
    lastActivityAt: clock.now(),
    ...NO_TIER,
  });
  await driver.create({
    ...common,
    sandboxId: SANDBOX,
    name: SANDBOX,
    user: options.user,
    workdir,
    env: {},
    mounts: [],
    labels: {},
    privileged: false,
  });
  await driver.start(SANDBOX);
  const user = options.user ?? { uid: 1000, gid: 1000 };
  await bed.host.supervisors.get(await bed.record()).configure({ deadlineMs: 0, ...user, workdir });
  return bed;
}

export function fakeBed(
  options: FakeDriverOptions & { outputBytes?: number } = {},
): Promise<ExecBed<FakeDriver>> {
  const { outputBytes, ...driver } = options;
  return bedOn(createFakeDriver(driver), {
    ...(options.clock === undefined ? {} : { clock: options.clock }),
    ...(outputBytes === undefined ? {} : { outputBytes }),
  });
}

/** Waits until something is so; fails with `what` when it is not within the time. */
export async function until(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  limitMs = 10_000,
): Promise<void> {
  const end = Date.now() + limitMs;
  while (!(await isSo())) {
    if (Date.now() > end) throw new Error(`not within ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
