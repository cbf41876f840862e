import { expect, test } from "vitest";
import { storyJson } from "../../../src/core/swarm/testing/task-file-text.ts";
import { OwnEngine } from "../../backends/own-engine.ts";
import { makeWorkerImage } from "../workers-bed.ts";
import { RealSwarm } from "./real-swarm.ts";
import { shellWorker } from "./shell-worker.ts";

const SCRIPT = `story US-001 in_progress
echo "user $(id -u), socket $(ls /var/run/docker.sock 2>/dev/null)." >&2
story US-001 completed; done_`;

/** What can be seen without Sysbox: the engine's plain runtime under its name, so that all that aido asks for is asked for. */
test("S1-8 S1-59 S1-60 without a word on isolation workers run under Sysbox, as the root that an engine in them needs, unprivileged and without the host's engine", {
  timeout: 90_000,
}, async () => {
  await using engine = await OwnEngine.start({ runtimes: { "sysbox-runc": { path: "runc" } } });
  await engine.addImage("busybox");
  const { image } = await makeWorkerImage(engine.host);
  await using swarm = await RealSwarm.make({
    tasks: { cart: [storyJson("US-001")] },
    image,
    host: engine.host,
    ...shellWorker(SCRIPT),
  });
  const options = swarm.options.filter((word) => word !== "--isolation" && word !== "container");
  const { code, stdout, stderr } = await swarm.aido("swarm", "--all", ...options);
  expect([code, swarm.statuses("cart")], stderr).toEqual([0, ["completed"]]);
  expect(stdout).toContain("user 0, socket .");
  const [known] = JSON.parse(await swarm.docker("inspect", swarm.worker("cart")));
  expect(known.HostConfig).toMatchObject({ Runtime: "sysbox-runc", Privileged: false });
  expect(JSON.stringify(known.Mounts)).not.toContain("docker.sock");
});
