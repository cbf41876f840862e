import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { storyJson } from "../../../src/core/swarm/testing/task-file-text.ts";
import { until } from "../../contract/driver-backend.ts";
import { makeWorkerImage } from "../workers-bed.ts";
import { RealSwarm, twoStories } from "./real-swarm.ts";
import { Gate, writing } from "./scripted-model.ts";
import { shellWorker } from "./shell-worker.ts";

const NAMES = ["cart", "login", "search"];

const containerIds = (swarm: RealSwarm) => NAMES.map((name) => swarm.entry(name)?.containerId);
const begun = (swarm: RealSwarm, branch: string) =>
  swarm.model.asked.filter((asked) => asked.branch === branch && asked.step === 0).map(({ story }) => story);

test("S1-34 S1-70 S1-71 a worker that is killed has failed, the others complete, and resume finishes it from where it was", {
  timeout: 150_000,
}, async () => {
  const gate = new Gate();
  await using swarm = await RealSwarm.make({
    tasks: Object.fromEntries(NAMES.map((name) => [name, twoStories()])),
    script: writing(({ branch, story }) => branch === "feat/cart" && story === "US-002", gate),
  });
  await using running = swarm.start("swarm", "--all", ...swarm.options);
  await gate.reached;
  await swarm.docker("kill", swarm.worker("cart"));
  const { code, stdout, stderr } = await running.end();
  expect([code, swarm.statuses(...NAMES)]).toEqual([1, ["failed", "completed", "completed"]]);
  expect(stdout).toMatch(
    /^cart-\S+ +\| failed: It ended without a last message: exit code 137, 1 of 2 stories completed/m,
  );
  expect(stderr).toContain("1 of 3 not completed: `aido swarm resume` goes on with them");
  expect(swarm.entry("cart")?.storyProgress).toMatchObject({ completed: 1, inProgress: 1 });
  const before = containerIds(swarm);
  gate.open();
  const resumed = await swarm.aido("swarm", "resume");
  expect([resumed.code, swarm.statuses(...NAMES)]).toEqual([0, ["completed", "completed", "completed"]]);
  const after = containerIds(swarm);
  expect(after.map((id, index) => id === before[index])).toEqual([true, true, true]);
  expect(swarm.storiesAtOrigin("cart")).toEqual({ "US-001": "completed", "US-002": "completed" });
  expect(begun(swarm, "feat/cart")).toEqual(["US-001", "US-002", "US-002"]);
  expect(begun(swarm, "feat/login")).toEqual(["US-001", "US-002"]);
  expect(swarm.atOrigin("cart", "US-001.txt")).toBe("US-001\n");
});

test("S1-48 S1-50 S1-71 workers go on when their orchestrator is killed; resume starts nothing twice, and all complete", {
  timeout: 150_000,
}, async () => {
  const gate = new Gate();
  await using swarm = await RealSwarm.make({
    tasks: Object.fromEntries(NAMES.map((name) => [name, [storyJson("US-001")]])),
    script: writing(({ branch }) => branch === "feat/cart", gate),
  });
  await using running = swarm.start("swarm", "--all", ...swarm.options);
  await gate.reached;
  await until("all run", () => swarm.statuses(...NAMES).every((status) => status !== "pending"), 60_000);
  running.child.kill("SIGKILL");
  await running.end();
  const before = containerIds(swarm);
  const status = await swarm.aido("swarm", "status");
  expect(status.stdout).toMatch(/^aimi-swarm-cart-\S+ .* running +0\/1 +-$/m);
  expect(status.stderr).toContain("Nobody follows this swarm: `aido swarm resume` goes on with it");
  await using resumed = swarm.start("swarm", "resume");
  await resumed.until("| running: The cart");
  gate.open();
  const { code } = await resumed.end();
  expect([code, swarm.statuses(...NAMES)]).toEqual([0, ["completed", "completed", "completed"]]);
  expect(containerIds(swarm)).toEqual(before);
  for (const name of NAMES) {
    expect(begun(swarm, `feat/${name}`)).toEqual(["US-001"]);
    expect(swarm.subjects(name)).toEqual(["US-001: Story US-001"]);
    expect(swarm.atOrigin(name, "US-001.txt")).toBe("US-001\n");
  }
});

describe("S1-70 S1-71 an orchestrator killed", () => {
  let made: Awaited<ReturnType<typeof makeWorkerImage>>;
  beforeAll(async () => {
    made = await makeWorkerImage();
  });
  afterAll(async () => {
    await made?.[Symbol.asyncDispose]();
  });

  test.each([
    ["when the swarm is written down", "| pending: "],
    ["while containers are made", "| creating"],
    ["when a worker runs", "| running"],
    ["when a worker has ended", "| completed"],
  ])("%s leaves what resume completes, each adapter started once and in one container", async (_, said) => {
    await using swarm = await RealSwarm.make({
      tasks: Object.fromEntries(NAMES.map((name) => [name, [storyJson("US-001")]])),
      image: made.image,
      ...shellWorker(
        'wget -q -O /dev/null "$GITHUB_API_URL/$AIMI_BRANCH"; story US-001 in_progress; story US-001 completed; done_',
      ),
    });
    await using running = swarm.start("swarm", "--all", ...swarm.options);
    await running.until(said);
    running.child.kill("SIGKILL");
    await running.end();
    const { code, stdout } = await swarm.aido("swarm", "resume", "--no-build");
    expect([code, swarm.statuses(...NAMES)], stdout).toEqual([0, NAMES.map(() => "completed")]);
    expect(swarm.forge.asked.map(({ url }) => url).sort()).toEqual(NAMES.map((name) => `/feat/${name}`));
    expect((await swarm.containers()).sort()).toEqual(NAMES.map((name) => swarm.worker(name)));
  });
});
