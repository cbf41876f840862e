import type { Activity } from "../activity/activity.ts";
import type { CredentialKeeper } from "../aws/credential-keeper.ts";
import type { Clock } from "../clock.ts";
import type { ClockJumps } from "../clock-jumps.ts";
import type { DataDir } from "../data-dir.ts";
import type { Driver } from "../driver/driver.ts";
import type { EvidenceArchive } from "../evidence/evidence-archive.ts";
import type { EvidenceSink } from "../evidence/evidence-sink.ts";
import type { Logger } from "../logger.ts";
import type { ProcessIdentity } from "../process-identity.ts";
import type { Store } from "../store/store.ts";
import type { Supervisors } from "../supervisor/supervisors.ts";
import type { TierOptions } from "../tier/tier-snapshots.ts";

/** What the parts of the sandbox service share. */
export interface SandboxDeps {
  readonly driver: Driver;
  readonly store: Store;
  readonly dataDir: DataDir;
  readonly evidence: EvidenceSink & EvidenceArchive;
  readonly supervisors: Supervisors;
  readonly processes: ProcessIdentity;
  readonly activity: Activity;
  readonly clock: Clock;
  readonly jumps: ClockJumps;
  readonly logger: Logger;
  /** Whether an image that the machine lacks is fetched for sidecar sandboxes; unless this is false. */
  readonly pullSidecarImages?: boolean | undefined;
  /** Without it a stopped sandbox keeps its container. */
  readonly tiers?: TierOptions | undefined;
  /** Without it AWS permissions are refused. */
  readonly aws?: CredentialKeeper | undefined;
}
