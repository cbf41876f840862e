import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PublicAddress } from "../../src/core/access/public-address.ts";
import { Activity } from "../../src/core/activity/activity.ts";
import { ClockJumps } from "../../src/core/clock-jumps.ts";
import { DataDir } from "../../src/core/data-dir.ts";
import type { Driver } from "../../src/core/driver/driver.ts";
import { EvidenceLog } from "../../src/core/evidence/evidence-log.ts";
import { ExecService } from "../../src/core/exec/exec-service.ts";
import type { Logger } from "../../src/core/logger.ts";
import type { ProfileOverrides } from "../../src/core/sandbox/build-record.ts";
import { SandboxService } from "../../src/core/sandbox/sandbox-service.ts";
import { Supervisors } from "../../src/core/supervisor/supervisors.ts";
import type { TierOptions } from "../../src/core/tier/tier-snapshots.ts";
import { FakeDriver, type FakeDriverOptions } from "../../src/drivers/fake/fake-driver.ts";
import { MemoryStore } from "../../src/stores/memory/memory-store.ts";
import { HandClock } from "../exec/hand-clock.ts";
import { fakeIdentity } from "../processes/fake-presence.ts";

export interface BedOptions extends FakeDriverOptions {
  overrides?: ProfileOverrides;
  tiers?: TierOptions;
  pullSidecarImages?: boolean;
  capacity?: number;
  /** What is still read from a workspace. */
  settled?: (id: string) => Promise<void> | undefined;
}

/** The sandbox service on a fake driver, a memory store and a clock that is moved by hand. */
export function sandboxBed(options: BedOptions = {}) {
  const clock = new HandClock();
  const jumps = new ClockJumps(clock, () => clock.passedMs());
  const driver = new FakeDriver({ clock, ...options });
  const store = new MemoryStore();
  const dataDir = new DataDir(mkdtempSync(join(tmpdir(), "aido-sandbox-")));
  const dead = new Set<string>();
  const warnings: string[] = [];
  const logger = quietLogger(warnings);
  const evidence = new EvidenceLog({ heads: store.evidence, dataDir, clock, logger, actor: "tester" });
  const closers: (() => Promise<void>)[] = [];
  const supervisors = new Supervisors({ driver, clock, logger });
  const activity = new Activity({ sandboxes: store.sandboxes, clock, logger });
  let ids = 0;
  const newId = () => `box${String(++ids).padStart(5, "0")}`;

  /** Another process on the same store and driver; `name` is how its claims are known. */
  const process = (name: string, other: Partial<{ driver: Driver }> = {}): SandboxService => {
    const own = other.driver ?? driver;
    const service = new SandboxService({
      driver: own,
      store,
      dataDir,
      evidence,
      supervisors: name === "p1" ? supervisors : new Supervisors({ driver: own, clock, logger }),
      activity: name === "p1" ? activity : new Activity({ sandboxes: store.sandboxes, clock, logger }),
      processes: fakeIdentity(name, dead),
      clock,
      jumps,
      logger,
      newId,
      overrides: options.overrides,
      tiers: options.tiers,
      pullSidecarImages: options.pullSidecarImages,
      capacity: options.capacity,
      settled: options.settled,
      address: new PublicAddress({ host: "127.0.0.1", port: 3000 }),
    });
    closers.unshift(() => service.close());
    return service;
  };
  const sandboxes = process("p1");
  const execs = new ExecService({ store, supervisors, dataDir, evidence, clock, logger, sandboxes });
  closers.unshift(() => execs.close());

  return {
    clock,
    driver,
    store,
    dataDir,
    dead,
    warnings,
    process,
    sandboxes,
    execs,
    activity,
    /** As another process would have it. */
    depsOf: (name: string) => ({
      ...{
        driver,
        store,
        dataDir,
        evidence,
        supervisors,
        activity,
        clock,
        jumps,
        logger,
        tiers: options.tiers,
      },
      processes: fakeIdentity(name, dead),
    }),
    shared: { driver, store, dataDir, evidence, supervisors, activity, clock, jumps, logger },
    async events(id: string): Promise<string[]> {
      const events: string[] = [];
      for await (const entry of evidence.read(id)) events.push(entry.event);
      return events;
    },
    async evidenceOk(id: string): Promise<boolean> {
      return (await evidence.verify(id)).every((verdict) => verdict.ok);
    },
    async [Symbol.asyncDispose]() {
      for (const close of closers) await close();
      await activity.close();
      supervisors.close();
      await driver.close();
      await evidence.flush();
      rmSync(dataDir.root, { recursive: true, force: true });
    },
  };
}

function quietLogger(warnings: string[]): Logger {
  const ignore = () => undefined;
  const logger: Logger = {
    debug: ignore,
    info: ignore,
    warn: (_fields, message) => warnings.push(message),
    error: (_fields, message) => warnings.push(message),
    child: () => logger,
  };
  return logger;
}

export type SandboxBed = ReturnType<typeof sandboxBed>;

/** Lets time pass for as long as something is waited for. */
export async function passUntil(bed: SandboxBed, waited: Promise<unknown>): Promise<void> {
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  waited.then(over, over);
  while (!isOver) {
    await bed.clock.advance(1000);
    // Files are removed in real time: a busy machine must not make a minute of ours pass first.
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
