import { engineContainer, engineExec } from "../engine.mjs";
import { createSandbox, execTrue, withAido } from "../product.mjs";
import { best, median, round, timed } from "../statistics.mjs";

const ROUNDS = 10;

/** From nothing to the first output of a command: the local driver against Docker used directly, and Aido on Docker beside. */
export function createLocal() {
  return withAido("local", (local) =>
    withAido("docker", async (docker) => {
      const ways = {
        local: ours(local, "local", "/usr/bin/echo"),
        aidoOnDocker: ours(docker, "docker", "/bin/echo"),
        engine,
      };
      const samples = { local: [], aidoOnDocker: [], engine: [] };
      for (let index = 0; index < ROUNDS + 1; index++) {
        for (const [name, toFirstOutput] of Object.entries(ways)) {
          let remove;
          const ms = await timed(async () => {
            remove = await toFirstOutput();
          });
          if (index > 0) samples[name].push(ms);
          await remove();
        }
      }
      const ratio = median(samples.engine) / median(samples.local);
      return {
        value: round(median(samples.local), 1),
        unit: "ms",
        baseline: round(median(samples.engine), 1),
        aidoOnDocker: round(median(samples.aidoOnDocker), 1),
        ratio: round(ratio, 1),
        bestRatio: round(best(samples.engine) / best(samples.local), 1),
        want: ">= 8 times faster than create, start and exec of the engine",
        ok: ratio >= 8,
      };
    }),
  );
}

const ours = (aido, driver, echo) => async () => {
  const { id } = await createSandbox(aido, driver);
  await execTrue(aido, id, [echo, "x"]);
  return () => aido.sandboxes.destroy(id);
};

async function engine() {
  const container = await engineContainer();
  await container.start();
  await engineExec(container, ["/bin/echo", "x"]);
  return () => container.remove({ force: true });
}
