import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { docker } from "../../../../test/backends/docker-cli.ts";
import { expectNothing, inspect, networks } from "../../../../test/swarm/engine-looks.ts";
import { makeEngineBed, makeWorkerImage } from "../../../../test/swarm/workers-bed.ts";
import { requestOf } from "../../../../test/swarm/workers-contract.ts";

let made: Awaited<ReturnType<typeof makeWorkerImage>>;
beforeAll(async () => {
  made = await makeWorkerImage();
});
afterAll(async () => {
  await made?.[Symbol.asyncDispose]();
});
const makeBed = () => makeEngineBed(made.image);

describe("S1-68 making a worker", () => {
  test("refuses the name of a container that is not ours, and leaves it alone", async () => {
    await using bed = await makeBed();
    const { workers, name } = bed;
    const foreign = await docker(["create", "--name", name, "aido-test:busybox", "true"]);
    try {
      await expect(workers.create(requestOf(bed))).rejects.toMatchObject({ code: "CONTAINER_NAME_TAKEN" });
      expect(await networks(name)).toBe("");
      expect(await workers.status(name)).toMatchObject({ exists: false });
      await workers.remove(name);
      expect((await inspect(name)).Id).toBe(foreign);
    } finally {
      await docker(["rm", "-f", foreign]);
    }
  });

  test("refuses the name of a network that is not ours, and leaves it alone", async () => {
    await using bed = await makeBed();
    const { workers, name } = bed;
    const foreign = await docker(["network", "create", `${name}-net`]);
    try {
      await expect(workers.create(requestOf(bed))).rejects.toMatchObject({ code: "CONTAINER_NAME_TAKEN" });
      expect(await docker(["ps", "-aq", "--filter", `name=${name}`])).toBe("");
      expect(await workers.list()).toEqual([]);
      expect(await docker(["network", "ls", "-q", "--no-trunc", "--filter", `id=${foreign}`])).toBe(foreign);
    } finally {
      await docker(["network", "rm", foreign]);
    }
  });

  test("refuses a name that a worker of another project has", async () => {
    await using bed = await makeBed();
    await using other = await makeBed();
    const { name } = bed;
    const { containerId } = await bed.workers.create(requestOf(bed));
    const taken = { code: "CONTAINER_NAME_TAKEN" };
    await expect(other.workers.create(requestOf(other, { name }))).rejects.toMatchObject(taken);
    await other.workers.remove(name);
    expect(await bed.workers.status(name)).toMatchObject({ swarmState: "pending", containerId });
  });

  test("leaves nothing when it fails: no image, a wrong name, a signal on the way", async () => {
    await using bed = await makeBed();
    const { workers } = bed;
    const missing = requestOf(bed, { image: "aido-test:no-such-image" });
    await expect(workers.create(missing)).rejects.toMatchObject({ code: expect.stringMatching(/^IMAGE_/) });
    await expect(workers.create(requestOf(bed, { name: "login" }))).rejects.toMatchObject({
      code: "VALIDATION_ERROR",
    });
    await expectNothing(bed);
    for (const ms of [5, 80, 200]) {
      const made = await workers.create(requestOf(bed), AbortSignal.timeout(ms)).catch(() => undefined);
      if (made !== undefined) await workers.remove(bed.name);
      await expectNothing(bed);
    }
  });

  test("two at once make one", async () => {
    await using bed = await makeBed();
    const other = await bed.another();
    const results = await Promise.allSettled([
      bed.workers.create(requestOf(bed)),
      other.create(requestOf(bed)),
    ]);
    expect(results.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(results.find(({ status }) => status === "rejected")).toMatchObject({
      reason: { code: "CONTAINER_NAME_TAKEN" },
    });
    expect(await bed.workers.status(bed.name)).toMatchObject({ swarmState: "pending" });
  });

  test("S1-8 without Sysbox says what to install; gVisor without a network is refused", async () => {
    await using bed = await makeBed();
    const { workers } = bed;
    await expect(workers.checkRuntime("sysbox")).rejects.toMatchObject({
      code: "ISOLATION_UNAVAILABLE",
      hint: expect.stringContaining("Install Sysbox"),
    });
    await expect(workers.checkRuntime("gvisor")).rejects.toMatchObject({ code: "ISOLATION_UNAVAILABLE" });
    await expectNothing(bed);
  });
});
