import { execFile } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { TierCollector } from "../../packages/aido/dist/core/tier/collector.js";
import { NO_TIER } from "../../packages/aido/dist/core/tier/tier-fields.js";
import { SqliteStore } from "../../packages/aido/dist/stores/sqlite/sqlite-store.js";
import { engineContainer } from "../engine.mjs";
import { createSandbox, execTrue, temporaryDirectory, withAido } from "../product.mjs";
import { median, round, timed } from "../statistics.mjs";

const ROUNDS = 20;
/** Into each tier and back. */
const MOVES = 3;
const DUE = 10;
const TICKS = 15;

/** A stopped sandbox until it takes commands again, against the Engine's start of a stopped container. */
export function resumeHot() {
  return withTiers(async (aido) => {
    const { id } = await createSandbox(aido, "docker");
    const container = await engineContainer({ Cmd: ["/bin/sleep", "600"] });
    try {
      const samples = { ours: [], theirs: [] };
      for (let index = 0; index < ROUNDS; index++) {
        await aido.sandboxes.stop(id, { graceMs: 0 });
        samples.ours.push(await timed(() => aido.sandboxes.start(id)));
        samples.theirs.push(await timed(() => container.start()));
        await container.stop({ t: 0 });
      }
      const ratio = median(samples.ours) / median(samples.theirs);
      return {
        value: round(median(samples.ours), 1),
        unit: "ms",
        baseline: round(median(samples.theirs), 1),
        ratio: round(ratio, 2),
        want: "<= 1.5 times docker start",
        ok: ratio <= 1.5,
      };
    } finally {
      await container.remove({ force: true });
    }
  });
}

/** From every tier, with a small and a large workspace; cold against tar and zstd of the same bytes on the same disk. */
export function resumeTiers() {
  return withTiers(async (aido, directory) => {
    const sizes = {};
    for (const mib of [1, 500]) sizes[`${mib}MB`] = await resumeWith(aido, directory, mib);
    const { ratio } = sizes["500MB"].cold;
    return {
      value: ratio,
      unit: "of tar | zstd",
      ...sizes,
      want: "cold >= half of tar | zstd",
      ok: ratio >= 0.5,
    };
  });
}

async function resumeWith(aido, directory, mib) {
  const { id } = await createSandbox(aido, "docker");
  const fill = `dd if=/dev/urandom of=data bs=1048576 count=${mib} 2>/dev/null`;
  await execTrue(aido, id, ["/bin/sh", "-c", fill]);
  const answer = {};
  for (const [tier, collections] of Object.entries({ hot: 0, warm: 1, cold: 2 })) {
    const samples = { away: [], back: [], plain: [] };
    for (let index = 0; index < MOVES; index++) {
      await aido.sandboxes.stop(id, { graceMs: 0 });
      const away = async () => {
        for (let at = 0; at < collections; at++) await aido.gc.collect();
      };
      samples.away.push(await timed(away));
      samples.back.push(await timed(() => aido.sandboxes.start(id)));
      if (tier === "cold") samples.plain.push(await plainTar(directory, mib));
    }
    const backMs = median(samples.back);
    answer[tier] = {
      awayMs: round(median(samples.away), 0),
      backMs: round(backMs, 0),
      mibPerS: round((mib * 1000) / backMs, 1),
      ...(tier === "cold" && { ratio: round(median(samples.plain) / backMs, 2) }),
    };
  }
  await aido.sandboxes.destroy(id);
  return answer;
}

/** Unpacks what was packed, as a resume does. */
async function plainTar(directory, mib) {
  const sh = (script) => promisify(execFile)("/bin/sh", ["-c", script], { cwd: directory });
  await sh(`mkdir -p plain && dd if=/dev/urandom of=plain/data bs=1048576 count=${mib} 2>/dev/null`);
  await sh("tar c plain | zstd -q -1 -f -o plain.tar.zst");
  const ms = await timed(() => sh("mkdir -p out && zstd -d -c -q plain.tar.zst | tar x -C out"));
  await sh("rm -rf plain out plain.tar.zst");
  return ms;
}

/**
 * One collection with 10 due among 10,000 records, against one with 10 due among 100. A process's first also looks for
 * images that no record counts on, and is told beside.
 */
export async function gcTick() {
  const few = await collectionsOf(100);
  const many = await collectionsOf(10_000);
  const ratio = median(many) / median(few);
  return {
    value: round(median(many), 2),
    unit: "ms",
    baseline: round(median(few), 2),
    ratio: round(ratio, 2),
    firstMs: round(many[0], 2),
    want: "<= 2 times that of 100 records",
    ok: ratio <= 2,
  };
}

async function collectionsOf(count) {
  const directory = temporaryDirectory();
  const store = new SqliteStore(join(directory.path, "aido.db"));
  try {
    const now = new Date();
    for (let index = 0; index < count; index++) await store.sandboxes.insert(record(index, now));
    const collector = new TierCollector(depsOf(store, count), {
      hotMs: 86_400_000,
      warmMs: 86_400_000,
      coldMs: 86_400_000,
    });
    const samples = [];
    for (let tick = 0; tick < TICKS; tick++) {
      for (let index = 0; index < DUE; index++) {
        const due = { tier: "hot", tierSince: new Date(0), warmIsStale: true };
        await store.sandboxes.update(`box${index}`, due);
      }
      samples.push(
        await timed(async () => {
          const { warmed } = await collector.collect();
          if (warmed.length !== DUE) throw new Error(`${warmed.length} were moved`);
        }),
      );
    }
    return samples;
  } finally {
    await store.close();
    directory.remove();
  }
}

/** A driver that has an image of each sandbox and nothing to do: what is measured is the collection itself. */
function depsOf(store, count) {
  const nothing = async () => undefined;
  const ignore = () => undefined;
  const images = Array.from({ length: count }, (_, index) => imageOf(`box${index}`));
  const logger = { debug: ignore, info: ignore, warn: ignore, error: ignore, child: () => logger };
  return {
    driver: {
      name: "docker",
      commit: async (sandboxId) => imageOf(sandboxId),
      committedImages: async (sandboxId) => (sandboxId === undefined ? images : [imageOf(sandboxId)]),
      removeImage: async () => true,
      remove: nothing,
    },
    store,
    evidence: { append: nothing, archive: nothing },
    supervisors: { drop: ignore },
    processes: { self: "bench", isAlive: () => true, isDead: () => false },
    jumps: { within: () => false, last: () => undefined },
    clock: { now: () => new Date(), sleep: (ms, signal) => sleep(ms, undefined, { signal }) },
    logger,
  };
}

function imageOf(sandboxId) {
  return { reference: `of ${sandboxId}`, sandboxId, createdAt: new Date(), bytes: 0 };
}

function record(index, now) {
  return {
    id: `box${index}`,
    ...{ profile: "server", image: "any", driver: "docker", isolation: "container", state: "stopped" },
    ...{
      workdir: "/work",
      env: {},
      imageEnv: {},
      network: "none",
      limits: {},
      privileged: false,
      history: false,
    },
    ...{ labels: {}, mounts: [], ttlMs: 0, idleTimeoutMs: 0, autoResume: false, supervisorToken: "" },
    ...{
      name: undefined,
      endReason: undefined,
      containerId: undefined,
      user: undefined,
      tokenHash: undefined,
      permissions: undefined,
    },
    ...{ startedAt: now, stoppedAt: now, expiresAt: undefined },
    ...{
      createdAt: now,
      lastActivityAt: now,
      ...NO_TIER,
      tier: "hot",
      tierSince: now,
      warmImage: `of box${index}`,
    },
  };
}

/** Every collection moves everything by one tier; objects lie in a directory of the same disk. */
async function withTiers(action) {
  const directory = temporaryDirectory();
  const settings = {
    SANDBOX_GC_HOT_RETENTION: "0",
    SANDBOX_GC_WARM_RETENTION: "0",
    SANDBOX_GC_COLD_RETENTION: "604800",
    SANDBOX_SNAPSHOT_AUTO_COMMIT: "false",
    SANDBOX_SNAPSHOT_DESTINATION_PREFIX: `file://${join(directory.path, "objects")}/`,
  };
  Object.assign(process.env, settings);
  try {
    return await withAido("docker", (aido) => action(aido, directory.path));
  } finally {
    for (const name of Object.keys(settings)) delete process.env[name];
    directory.remove();
  }
}
