import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { makeObjectStores } from "../../src/compose/object-stores.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import { SnapshotService } from "../../src/core/snapshot/snapshot-service.ts";
import { SystemClock } from "../../src/core/system-clock.ts";
import { type AgentBed, openAgentBed } from "../exec/agent-bed.ts";

export interface SnapshotBed extends AsyncDisposable {
  readonly snapshots: SnapshotService;
  readonly workdir: string;
  /** Where the operator keeps snapshots. */
  readonly objects: string;
  readonly at: AgentBed;
}

/** The snapshots of a real supervisor's workdir, kept in a directory unless the variables say otherwise. */
export async function openSnapshotBed(env: Readonly<Record<string, string>> = {}): Promise<SnapshotBed> {
  const at = await openAgentBed();
  const objects = await mkdtemp(join(tmpdir(), "aido-objects-"));
  const variables = {
    AIDO_DATA_DIR: join(objects, "data"),
    AIDO_SNAPSHOT_PREFIX: pathToFileURL(objects).href,
    ...env,
  };
  const { config } = loadConfig({ env: variables, cwd: objects });
  const clock = new SystemClock();
  const { stores, policy } = makeObjectStores(config, clock);
  const { bed } = at;
  const snapshots = new SnapshotService({
    stores,
    prefix: policy.prefix,
    maxBytes: config.snapshot.maxBytes,
    store: bed.store,
    sandboxes: { resolve: () => bed.record(), resolveRunning: () => bed.record() },
    supervisors: bed.host.supervisors,
    evidence: {
      append: async (_, event, detail = {}) => {
        bed.told.push({ event, detail });
      },
      appendSoon: () => undefined,
    },
    activity: { begin: () => ({ [Symbol.dispose]: () => undefined }) },
    clock,
  });
  return {
    snapshots,
    workdir: at.workdir,
    objects,
    at,
    [Symbol.asyncDispose]: async () => {
      await at[Symbol.asyncDispose]();
      await rm(objects, { recursive: true, force: true });
    },
  };
}
