import { spawn } from "node:child_process";
import { engineContainer, engineExec } from "../engine.mjs";
import { createSandbox, execTrue, withAido } from "../product.mjs";
import { alternate, best, inTurns, median, percentile, round, timed } from "../statistics.mjs";

/** Until the code is compiled: what a process that runs for days takes is measured, not its first second. */
const WARM_UP = 3000;
const ROUNDS = 100;

/**
 * One command through core on Docker, against the engine's own exec in a container with the same limits. Not in the
 * same container: what the engine does for an exec counts against the limit, and ours would wait for it.
 */
export function execDocker() {
  return withAido("docker", async (aido) => {
    const sandbox = await createSandbox(aido, "docker");
    for (let i = 0; i < WARM_UP; i++) await execTrue(aido, sandbox.id);
    const container = await engineContainer();
    let samples;
    try {
      await container.start();
      for (let i = 0; i < 3; i++) await engineExec(container, ["/bin/true"]);
      samples = await inTurns(
        () => execTrue(aido, sandbox.id),
        () => engineExec(container, ["/bin/true"]),
      );
    } finally {
      await container.remove({ force: true });
    }
    const { ours, theirs } = samples;
    const ratio = median(theirs) / median(ours);
    return {
      value: round(median(ours)),
      unit: "ms",
      p99: round(percentile(ours, 0.99)),
      baseline: round(median(theirs)),
      ratio: round(ratio, 1),
      bestRatio: round(best(theirs) / best(ours), 1),
      want: ">= 30 times faster than the engine's exec",
      ok: ratio >= 30,
    };
  });
}

/** One command through core on the local driver, against a plain spawn. */
export function execLocal() {
  return withAido("local", async (aido) => {
    const sandbox = await createSandbox(aido, "local");
    for (let i = 0; i < WARM_UP; i++) await execTrue(aido, sandbox.id);
    const plain = () =>
      new Promise((resolve, reject) => {
        const child = spawn("/bin/true", { stdio: ["ignore", "pipe", "pipe"] });
        child.on("error", reject);
        child.on("close", resolve);
      });
    for (let i = 0; i < 20; i++) await timed(plain);
    const { ours, theirs } = await alternate(ROUNDS, () => execTrue(aido, sandbox.id), plain);
    const more = median(ours) - median(theirs);
    return {
      value: round(median(ours)),
      unit: "ms",
      p99: round(percentile(ours, 0.99)),
      baseline: round(median(theirs)),
      ratio: round(median(ours) / median(theirs), 2),
      want: "within 2 ms of a plain spawn",
      ok: more <= 2,
    };
  });
}
