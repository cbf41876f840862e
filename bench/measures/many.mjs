import { readFileSync } from "node:fs";
import { docker } from "../engine.mjs";
import { createSandbox, execTrue, withAido } from "../product.mjs";
import { median, percentile, round, timed } from "../statistics.mjs";

const COUNT = 50;

/** 50 sandboxes at once, each with a command: none fails, nothing is left. */
export function burst() {
  return withAido("docker", async (aido) => {
    const times = [];
    const before = await sandboxContainers();
    const one = async () => {
      const started = performance.now();
      const sandbox = await createSandbox(aido, "docker", { limits: { cpus: 0.5 } });
      await execTrue(aido, sandbox.id);
      times.push(performance.now() - started);
      return sandbox;
    };
    let results;
    const total = await timed(async () => {
      results = await Promise.allSettled(Array.from({ length: COUNT }, one));
    });
    const made = results.filter((result) => result.status === "fulfilled").map((result) => result.value);
    await Promise.all(made.map((sandbox) => aido.sandboxes.destroy(sandbox.id)));
    const left = (await sandboxContainers()).filter((id) => !before.includes(id));
    return {
      value: made.length,
      unit: "sandboxes",
      baseline: COUNT,
      ratio: made.length / COUNT,
      totalMs: round(total, 0),
      p95Ms: round(percentile(times, 0.95), 0),
      left: left.length,
      want: "all 50, nothing left behind",
      ok: made.length === COUNT && left.length === 0,
    };
  });
}

/** Of failed creates too. */
async function sandboxContainers() {
  const filters = { label: ["dev.aido.sandbox"] };
  return (await docker.listContainers({ all: true, filters })).map(({ Id }) => Id);
}

/** What a sandbox needs beyond its container: the resident memory of the supervisor and of what waits below it, after work. */
export function memory() {
  return withAido("docker", async (aido) => {
    const samples = [];
    for (let index = 0; index < 5; index++) {
      const sandbox = await createSandbox(aido, "docker");
      for (let exec = 0; exec < 20; exec++) await execTrue(aido, sandbox.id);
      const { State } = await docker.getContainer(sandbox.containerId).inspect();
      const supervisor = residentMiB(State.Pid);
      if (supervisor === undefined) throw new Error("the engine runs elsewhere");
      const below = readFileSync(`/proc/${State.Pid}/task/${State.Pid}/children`, "utf8").trim();
      // What the last command has left may end while this looks.
      samples.push(below.split(" ").reduce((sum, pid) => sum + (residentMiB(pid) ?? 0), supervisor));
    }
    return {
      value: round(median(samples), 2),
      unit: "MiB",
      baseline: 2,
      ratio: round(median(samples) / 2, 2),
      want: "<= 2 MiB per sandbox",
      ok: median(samples) <= 2,
    };
  });
}

/** Undefined of one that has ended, or is none of this machine's. */
function residentMiB(pid) {
  try {
    const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return kib === undefined ? undefined : Number(kib) / 1024;
  } catch {
    return undefined;
  }
}
