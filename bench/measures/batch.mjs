import { engineContainer, engineExec } from "../engine.mjs";
import { withServer } from "../server.mjs";
import { median, round, timed } from "../statistics.mjs";

const COUNT = 50;
const ROUNDS = 5;
const IMAGE = "aido-test:busybox";

/** One command in 50 sandboxes as a batch, against 50 of the Engine's own execs one after the other. */
export function batchExec() {
  return withServer({ SIDECAR_IMAGE: IMAGE }, async (api) => {
    const template = { template_request: { memory_mb: 32 } };
    const { sandboxes } = await api("POST", "/api/jobs/20", { count: COUNT, ...template });
    const request = {
      sidecar_urls: sandboxes.map(({ sidecarUrl }) => sidecarUrl),
      sidecar_tokens: sandboxes.map(({ token }) => token),
      command: "true",
      parallel: true,
    };
    const ours = async () => {
      const { execResults } = await api("POST", "/api/jobs/22", request);
      const bad = execResults.find(({ exitCode }) => exitCode !== 0);
      if (execResults.length !== COUNT || bad !== undefined)
        throw new Error(`failed: ${JSON.stringify(bad)}`);
    };
    const container = await engineContainer();
    try {
      await container.start();
      const theirs = async () => {
        for (let index = 0; index < COUNT; index++) await engineExec(container, ["sh", "-c", "true"]);
      };
      await ours();
      await engineExec(container, ["sh", "-c", "true"]);
      const samples = { ours: [], engine: [] };
      for (let index = 0; index < ROUNDS; index++) {
        samples.ours.push(await timed(ours));
        samples.engine.push(await timed(theirs));
      }
      const ratio = median(samples.engine) / median(samples.ours);
      return {
        value: round(median(samples.ours), 1),
        unit: "ms",
        baseline: round(median(samples.engine), 1),
        ratio: round(ratio, 1),
        want: ">= 10 times as fast as 50 Engine execs in sequence",
        ok: ratio >= 10,
      };
    } finally {
      await container.remove({ force: true });
    }
  });
}
