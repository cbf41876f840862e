import { docker, engineContainer, engineExec } from "../engine.mjs";
import { BUSYBOX_IMAGE } from "../product.mjs";
import { untilReady, withServer } from "../server.mjs";
import { inTurns, median, percentile, round, timed } from "../statistics.mjs";

const IMAGE = BUSYBOX_IMAGE;
/** Until the server's code is compiled: one that runs for days is measured, not its first second. */
const WARM_UP = 3000;
const LIFE = { options: { timeout: 600_000 } };
/** Seven hundred commands a second take more than the half that a sandbox has by default: the kernel would stop it for that. */
const WITH_A_PROCESSOR = { image: IMAGE, options: { ...LIFE.options, cpuLimit: "1" } };
const create = (api) => api("POST", "/api/sandbox", { image: IMAGE, ...LIFE });

async function execTrue(api, containerId) {
  const done = await api("POST", "/api/sandbox/exec", { containerId, command: ["/bin/true"] });
  if (done.exitCode !== 0) throw new Error(`exec ended with ${done.exitCode}`);
}

/** From the request for a sandbox to the end of its first command, over HTTP, against the engine used directly. */
export function createPool() {
  const rounds = 20;
  return withServer({ AIDO_SERVE_POOL: `${IMAGE}=4` }, async (api) => {
    const samples = { ours: [], theirs: [] };
    for (let at = 0; at < rounds; at++) {
      await untilReady(api, 4);
      let made;
      samples.ours.push(
        await timed(async () => {
          made = await create(api);
          await execTrue(api, made.containerId);
        }),
      );
      await api("DELETE", `/api/sandbox/${made.containerId}`);
      await untilReady(api, 4);
      let container;
      samples.theirs.push(
        await timed(async () => {
          container = await engineContainer();
          await container.start();
          await engineExec(container, ["/bin/true"]);
        }),
      );
      await container.remove({ force: true });
    }
    const ratio = median(samples.theirs) / median(samples.ours);
    return {
      value: round(median(samples.ours)),
      unit: "ms",
      p99: round(percentile(samples.ours, 0.99)),
      baseline: round(median(samples.theirs)),
      ratio: round(ratio, 1),
      want: ">= 10 times faster than create, start and exec of the engine",
      ok: ratio >= 10,
    };
  });
}

/** Far more at once than are ready: the rest are made, and none fails. */
export function burstPool() {
  const count = 50;
  return withServer({ AIDO_SERVE_POOL: `${IMAGE}=10` }, async (api) => {
    await untilReady(api, 10);
    const times = [];
    const one = async () => {
      times.push(
        await timed(async () => {
          const { containerId } = await create(api);
          await execTrue(api, containerId);
        }),
      );
    };
    const results = await Promise.allSettled(Array.from({ length: count }, one));
    const made = results.filter(({ status }) => status === "fulfilled").length;
    return {
      value: made,
      unit: "sandboxes",
      baseline: count,
      ratio: made / count,
      p20Ms: round(percentile(times, 0.19), 0),
      p95Ms: round(percentile(times, 0.95), 0),
      want: "all 50",
      ok: made === count,
    };
  });
}

/** One command over HTTP against the engine's own exec on the same container. */
export function execHttp() {
  return withServer({}, async (api) => {
    const { containerId, engineId } = await api("POST", "/api/sandbox", WITH_A_PROCESSOR);
    const container = docker.getContainer(engineId);
    for (let at = 0; at < WARM_UP; at++) await execTrue(api, containerId);
    const { ours, theirs } = await inTurns(
      () => execTrue(api, containerId),
      () => engineExec(container, ["/bin/true"]),
    );
    const ratio = median(theirs) / median(ours);
    const tail = percentile(ours, 0.99) / median(ours);
    return {
      value: round(median(ours)),
      unit: "ms",
      p99: round(percentile(ours, 0.99)),
      baseline: round(median(theirs)),
      ratio: round(ratio, 1),
      tail: round(tail, 1),
      want: ">= 20 times faster than the engine's exec, p99 under 5 times p50",
      ok: ratio >= 20 && tail < 5,
    };
  });
}

/** Commands a second over HTTP: all on one sandbox, and spread over twenty. */
export function execThroughput() {
  return withServer({}, async (api) => {
    const sandboxes = await Promise.all(Array.from({ length: 20 }, () => create(api)));
    const ids = sandboxes.map(({ containerId }) => containerId);
    const one = await rate(api, ids.slice(0, 1), 600);
    const many = await rate(api, ids, 600);
    return {
      value: round(Math.min(one, many), 0),
      unit: "execs/s",
      one: round(one, 0),
      across20: round(many, 0),
      baseline: 200,
      ratio: round(Math.min(one, many) / 200, 2),
      want: ">= 200 a second, on one sandbox and on twenty",
      ok: one >= 200 && many >= 200,
    };
  });
}

async function rate(api, ids, count) {
  let next = 0;
  const work = async () => {
    while (next < count) await execTrue(api, ids[next++ % ids.length]);
  };
  await Promise.all(ids.map((id) => execTrue(api, id)));
  const ms = await timed(() => Promise.all(Array.from({ length: 20 }, work)));
  return (count / ms) * 1000;
}
