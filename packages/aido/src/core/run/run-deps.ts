import type { Execs, Sandboxes } from "@aido/sdk";
import type { Clock } from "../clock.ts";
import type { DataDir } from "../data-dir.ts";
import type { Driver } from "../driver/driver.ts";
import type { EvidenceSink } from "../evidence/evidence-sink.ts";
import type { Logger } from "../logger.ts";
import type { ProcessIdentity } from "../process-identity.ts";
import type { SandboxLifecycle } from "../sandbox/sandbox-lifecycle.ts";
import type { SandboxResolver } from "../sandbox/sandbox-resolver.ts";
import type { Store } from "../store/store.ts";
import type { CaptureLimits } from "./capture-outputs.ts";

/** What runs are built from. */
export interface RunDeps {
  lifecycle: SandboxLifecycle;
  resolver: SandboxResolver;
  sandboxes: Pick<Sandboxes, "get" | "destroy" | "setTtl">;
  execs: Pick<Execs, "start" | "get" | "wait" | "output" | "kill">;
  store: Pick<Store, "sandboxes" | "runs">;
  /** Runs in sandboxes of another driver are left to a process that has it. */
  driver: Pick<Driver, "name" | "capabilities" | "standIn">;
  evidence: EvidenceSink;
  dataDir: DataDir;
  clock: Clock;
  logger: Logger;
  /** This process, as other processes see it. */
  identity: ProcessIdentity;
  newId(): string;
  captureLimits?: CaptureLimits | undefined;
}
