import { createSandbox, execTrue, withAido } from "../product.mjs";
import { best, median, round, timed } from "../statistics.mjs";

const ROUNDS = 10;

/** From nothing to the first output of a command, local against Docker. */
export function createLocal() {
  const toFirstOutput = (aido, driver) => async () => {
    const sandbox = await createSandbox(aido, driver);
    const argv = driver === "docker" ? ["/bin/echo", "x"] : ["/usr/bin/echo", "x"];
    await execTrue(aido, sandbox.id, argv);
    return sandbox.id;
  };
  return withAido("local", (local) =>
    withAido("docker", async (docker) => {
      const samples = { local: [], docker: [] };
      for (let index = 0; index < ROUNDS + 1; index++) {
        for (const [name, aido] of [
          ["local", local],
          ["docker", docker],
        ]) {
          let id;
          const ms = await timed(async () => {
            id = await toFirstOutput(aido, name)();
          });
          if (index > 0) samples[name].push(ms);
          await aido.sandboxes.destroy(id);
        }
      }
      const ratio = median(samples.docker) / median(samples.local);
      return {
        value: round(median(samples.local), 1),
        unit: "ms",
        baseline: round(median(samples.docker), 1),
        ratio: round(ratio, 1),
        bestRatio: round(best(samples.docker) / best(samples.local), 1),
        want: ">= 8 times faster than on Docker",
        ok: ratio >= 8,
      };
    }),
  );
}
