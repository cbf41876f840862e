import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { NewRun, RunFile, StartRun } from "@aido/sdk";
import type { EvidenceEntry, RunRecord, RunSpec, RunSummary } from "@aido/sdk/protocol";
import { Activity } from "../../src/core/activity/activity.ts";
import type { AwsAccess } from "../../src/core/aws/aws-access.ts";
import { CredentialKeeper } from "../../src/core/aws/credential-keeper.ts";
import type { Clock } from "../../src/core/clock.ts";
import { ClockJumps } from "../../src/core/clock-jumps.ts";
import { DataDir } from "../../src/core/data-dir.ts";
import type { Driver } from "../../src/core/driver/driver.ts";
import { EvidenceLog } from "../../src/core/evidence/evidence-log.ts";
import { ExecService } from "../../src/core/exec/exec-service.ts";
import type { Logger } from "../../src/core/logger.ts";
import { LinuxProcessIdentity, type ProcessIdentity } from "../../src/core/process-identity.ts";
import type { CaptureLimits } from "../../src/core/run/capture-outputs.ts";
import { RunService } from "../../src/core/run/run-service.ts";
import { SandboxService } from "../../src/core/sandbox/sandbox-service.ts";
import type { Store } from "../../src/core/store/store.ts";
import { Supervisors } from "../../src/core/supervisor/supervisors.ts";
import { SystemClock } from "../../src/core/system-clock.ts";

export interface RunHost {
  readonly runs: RunService;
  readonly sandboxes: SandboxService;
  readonly execs: ExecService;
  readonly dataDir: DataDir;
  readonly store: Store;
  readonly supervisors: Supervisors;
  up(spec?: Partial<RunSpec>, files?: HostFiles): Promise<RunRecord>;
  /** Starts a task and waits for its end. */
  run(request: StartRun): Promise<RunSummary>;
  read(sandboxId: string, path: string): Promise<string>;
  events(sandboxId: string): Promise<readonly EvidenceEntry[]>;
  /** Ends this process's part without a word to anyone, as kill -9 would. */
  die(): Promise<void>;
  close(): Promise<void>;
}

export interface HostFiles {
  inputs?: readonly RunFile[];
  tasks?: readonly RunFile[];
  autoDestroy?: boolean;
  implicit?: boolean;
  start?: NewRun;
}

export interface RunHostOptions {
  driver: Driver;
  store: Store;
  directory: string;
  clock?: Clock;
  captureLimits?: CaptureLimits;
  image?: string;
  aws?: AwsAccess | undefined;
  /** Asked before each effect of this process on store and evidence; false means that it died just there. */
  mayGoOn?: (() => boolean) | undefined;
}

/** A process that died does nothing more and answers nobody. */
function mortal<T extends object>(target: T, mayGoOn: () => boolean): T {
  return new Proxy(target, {
    get(object, key) {
      const value: unknown = Reflect.get(object, key, object);
      if (typeof value === "function") {
        return (...parameters: unknown[]) =>
          mayGoOn() ? value.apply(object, parameters) : new Promise<never>(() => undefined);
      }
      return typeof value === "object" && value !== null ? mortal(value, mayGoOn) : value;
    },
  });
}

/** Processes that share a machine in a test: those that died are dead to the others. */
const dead = new Set<string>();

class TestIdentity implements ProcessIdentity {
  readonly self: string;

  constructor() {
    this.self = new LinuxProcessIdentity(randomBytes(4).toString("hex")).self;
  }

  isDead(holder: string): boolean {
    return dead.has(holder.split("#")[0] ?? holder);
  }

  isAlive(holder: string): boolean {
    return !this.isDead(holder);
  }
}

/** One process's view: all of core on a driver and a store that other hosts may share. */
export function makeRunHost(options: RunHostOptions): RunHost {
  const mayGoOn = options.mayGoOn ?? (() => true);
  const isMortal = options.mayGoOn !== undefined;
  const { driver } = options;
  const store = isMortal ? mortal(options.store, mayGoOn) : options.store;
  const clock = options.clock ?? new SystemClock();
  const jumps = new ClockJumps(clock);
  const dataDir = new DataDir(options.directory);
  const logger = silentLogger;
  const identity = new TestIdentity();
  const evidence = new EvidenceLog({ heads: store.evidence, dataDir, clock, logger, actor: "test" });
  const supervisors = new Supervisors({ driver, clock, logger });
  const newId = () => randomBytes(4).toString("hex");
  const activity = new Activity({ sandboxes: store.sandboxes, clock, logger });
  const shared = { driver, store, dataDir, evidence, supervisors, activity, clock, jumps, logger, newId };
  const { aws: access } = options;
  const aws =
    access === undefined
      ? undefined
      : new CredentialKeeper({ ...shared, access, sandboxes: store.sandboxes });
  const sandboxes = new SandboxService({ ...shared, aws, processes: identity });
  const execs = new ExecService({ ...shared, sandboxes });
  const runs = new RunService({
    ...shared,
    lifecycle: sandboxes,
    resolver: sandboxes,
    sandboxes,
    execs,
    identity,
    captureLimits: options.captureLimits,
  });
  const close = async () => {
    await runs.close();
    await execs.close();
    supervisors.close();
    await sandboxes.close();
    await activity.close();
    await evidence.flush();
  };
  return {
    runs,
    sandboxes,
    execs,
    dataDir,
    store,
    supervisors,
    up: (spec = {}, files = {}) =>
      runs.up({
        spec: specOf({ ...(options.image === undefined ? {} : { runtime: options.image }), ...spec }),
        specText: `name: ${spec.name ?? "test"}\n`,
        inputs: files.inputs ?? [],
        tasks: files.tasks,
        autoDestroy: files.autoDestroy,
        implicit: files.implicit,
        start: files.start,
      }),
    run: async (request) => {
      const record = await runs.start(request);
      return await runs.wait(record.id);
    },
    read: (sandboxId, path) => readFile(join(dataDir.sandbox(sandboxId), path), "utf8"),
    events: async (sandboxId) => {
      await execs.close();
      const entries: EvidenceEntry[] = [];
      for await (const entry of evidence.read(sandboxId)) entries.push(entry);
      return entries;
    },
    die: async () => {
      dead.add(identity.self);
      supervisors.close();
      // What a mortal host waits for never comes.
      if (!isMortal) await close();
    },
    close,
  };
}

export function specOf(changes: Partial<RunSpec> = {}): RunSpec {
  return {
    name: "test",
    runtime: "bash",
    ttlMs: 60_000,
    inputs: [],
    outputs: [],
    limits: {},
    timeoutMs: 0,
    env: {},
    network: "none",
    steps: [],
    ...changes,
  };
}

export function fileOf(path: string, text: string): RunFile {
  return {
    path,
    async *content() {
      yield Buffer.from(text);
    },
  };
}

export function stepOf(
  name: string,
  task: string,
  changes: { timeoutMs?: number; env?: Record<string, string> } = {},
) {
  return { name, task, timeoutMs: 0, env: {}, ...changes };
}

const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};
