import { expect, test } from "vitest";
import { makeFakeHost } from "../../../test/run/fake-host.ts";
import { fileOf, stepOf } from "../../../test/run/run-harness.ts";

const SLOW = fileOf("slow.sh", "out begun\nsleep 60\n");

test("S0-74 S0-76 S0-77 S0-78 S0-87 a run that reaches its ttl ends as timeout, and its container is gone", async () => {
  await using host = await makeFakeHost();
  const { id } = await host.up({ ttlMs: 1000 });
  const summary = await host.run({ sandbox: id, task: SLOW });
  expect(summary).toMatchObject({ status: "timeout", exitCode: 124, error: "The sandbox's ttl is over" });
  expect(await host.runs.get(id)).toMatchObject({ status: "timeout", exitCode: 124 });
  expect(await host.driver.list()).toEqual([]);
  expect((await host.events(id)).map((entry) => entry.event)).toContain("run.timeout");
  expect(await host.read(id, "outputs/stdout.log")).toBe("begun\n");
});

test("S0-76 the ttl counts from the start of the container, not from `up`", async () => {
  await using host = await makeFakeHost();
  const { id } = await host.up({ ttlMs: 1000 });
  await new Promise((resolve) => setTimeout(resolve, 1100));
  expect(await host.run({ sandbox: id, task: fileOf("t.sh", "") })).toMatchObject({ status: "completed" });
});

test("S0-46 a task that takes longer than resources.timeout ends as timeout within its ttl", async () => {
  await using host = await makeFakeHost();
  const { id } = await host.up({ timeoutMs: 100 });
  const summary = await host.run({ sandbox: id, task: SLOW });
  expect(summary).toMatchObject({
    status: "timeout",
    exitCode: 124,
    error: expect.stringContaining("timeout"),
  });
});

test("S0-83 without auto-destroy the ttl does not end the sandbox", async () => {
  await using host = await makeFakeHost();
  const { id } = await host.up({ ttlMs: 100 }, { autoDestroy: false });
  const summary = await host.run({ sandbox: id, task: fileOf("t.sh", "sleep 0.3\nout done\n") });
  expect(summary.status).toBe("completed");
  expect(await host.sandboxes.get(id)).toMatchObject({ state: "running" });
});

test("a sandbox that dies under its task fails the run, and nothing is claimed about the exit code", async () => {
  await using host = await makeFakeHost();
  const { id } = await host.up();
  await host.runs.start({ sandbox: id, task: SLOW });
  host.driver.crash(id, { exitCode: 1 });
  expect(await host.runs.wait(id)).toMatchObject({ status: "failed", exitCode: null });
});

test("a sandbox that runs out of memory is told as such", async () => {
  await using host = await makeFakeHost();
  const { id } = await host.up();
  await host.runs.start({ sandbox: id, task: SLOW });
  host.driver.crash(id, { exitCode: 137, outOfMemory: true });
  expect(await host.runs.wait(id)).toMatchObject({
    status: "failed",
    exitCode: 137,
    error: expect.stringContaining("memory"),
  });
});

test("a sandbox that is destroyed under its task leaves nothing, and whoever waits is told", async () => {
  await using host = await makeFakeHost();
  const { id } = await host.up();
  await host.runs.start({ sandbox: id, task: SLOW });
  const waited = host.runs.wait(id).catch((thrown: unknown) => thrown);
  await host.another().sandboxes.destroy(id);
  expect(await waited).toMatchObject({ code: "CONTAINER_NOT_FOUND" });
  await expect(host.read(id, "run.json")).rejects.toMatchObject({ code: "ENOENT" });
});

test("S0-87 aido is killed: the sandbox ends by its ttl, and the next process writes down `timeout` and cleans up", async () => {
  await using host = await makeFakeHost();
  const first = host.another();
  const { id } = await first.up({ ttlMs: 1000 });
  await first.runs.start({ sandbox: id, task: SLOW });
  await first.die();
  await expect.poll(async () => (await host.driver.inspect(id))?.state).toBe("exited");
  await host.runs.recover();
  expect(await host.runs.get(id)).toMatchObject({ status: "timeout", exitCode: 124 });
  expect(await host.runs.summary(id)).toMatchObject({ status: "timeout" });
  expect(await host.driver.list()).toEqual([]);
  expect((await host.events(id)).map((entry) => entry.event)).toEqual(
    expect.arrayContaining(["run.recovered", "run.timeout"]),
  );
});

test("S0-87 a sandbox that reaches its ttl while the next process looks has timed out, and did not fail", async () => {
  await using host = await makeFakeHost();
  const first = host.another();
  const { id } = await first.up({ ttlMs: 1000 });
  await first.runs.start({ sandbox: id, task: SLOW });
  await first.die();
  const before = await host.sandboxes.get(id);
  expect(before.state).toBe("running");
  await expect.poll(async () => (await host.driver.inspect(id))?.state).toBe("exited");
  const real = host.sandboxes.get.bind(host.sandboxes);
  const looks = [before];
  host.sandboxes.get = async (sandbox) => looks.shift() ?? (await real(sandbox));
  await host.runs.recover();
  expect(looks).toEqual([]);
  expect(await host.runs.get(id)).toMatchObject({ status: "timeout", exitCode: 124 });
});

test("aido is killed and the task ends meanwhile: the next process takes its output and its exit code", async () => {
  await using host = await makeFakeHost();
  const first = host.another();
  const { id } = await first.up();
  const task = fileOf("t.sh", "out before\nsleep 0.2\nout after\nwrite /outputs/result x\nexit 5\n");
  await first.runs.start({ sandbox: id, task });
  await first.die();
  await expect.poll(async () => (await host.execs.list(id))[0]?.status).toBe("exited");
  await host.runs.recover();
  expect(await host.runs.summary(id)).toMatchObject({
    status: "failed",
    exitCode: 5,
    outputFiles: ["result"],
  });
  expect(await host.read(id, "outputs/stdout.log")).toBe("before\nafter\n");
});

test("aido is killed and the task still runs: it is left alone until someone waits for it", async () => {
  await using host = await makeFakeHost();
  const first = host.another();
  const { id } = await first.up();
  await first.runs.start({ sandbox: id, task: fileOf("t.sh", "sleep 0.4\nout end\n") });
  await first.die();
  await host.runs.recover();
  expect(await host.runs.get(id)).toMatchObject({ status: "running" });
  expect(await host.runs.wait(id)).toMatchObject({ status: "completed", exitCode: 0 });
  expect(await host.read(id, "outputs/stdout.log")).toBe("end\n");
});

test("a run of a living process is never taken over", async () => {
  await using host = await makeFakeHost();
  const first = host.another();
  const { id } = await first.up();
  await first.runs.start({ sandbox: id, task: fileOf("t.sh", "sleep 0.3\n") });
  await host.runs.recover({ adopt: true });
  expect(await host.runs.wait(id)).toMatchObject({ status: "completed" });
  const told = (await host.events(id)).map((entry) => entry.event);
  expect(told.filter((event) => event === "run.completed")).toHaveLength(1);
  expect(told).not.toContain("run.recovered");
});

test("a process that ends in order leaves the run to the next one", async () => {
  await using host = await makeFakeHost();
  const first = host.another();
  const { id } = await first.up();
  await first.runs.start({ sandbox: id, task: fileOf("t.sh", "out a\nsleep 0.3\nout b\n") });
  await first.close();
  expect(await host.runs.wait(id)).toMatchObject({ status: "completed" });
  expect(await host.read(id, "outputs/stdout.log")).toBe("a\nb\n");
});

test("S0-92 aido is killed between steps: what was done counts, the rest is skipped, the run is failed", async () => {
  await using host = await makeFakeHost();
  const first = host.another();
  const steps = [stepOf("a", "a.sh"), stepOf("b", "b.sh"), stepOf("c", "a.sh")];
  const tasks = [fileOf("a.sh", "out a\n"), fileOf("b.sh", "out b\nsleep 0.3\n")];
  const { id } = await first.up({ steps }, { tasks });
  await first.runs.start({ sandbox: id });
  await expect.poll(async () => (await first.runs.get(id)).steps?.[1]?.status).toBe("running");
  await first.die();
  await expect.poll(async () => (await host.execs.list(id))[0]?.status).toBe("exited");
  await host.runs.recover();
  const summary = await host.runs.summary(id);
  expect(summary).toMatchObject({ status: "failed", error: expect.stringContaining("before the next step") });
  expect(summary?.steps?.map((step) => step.status)).toEqual(["completed", "completed", "skipped"]);
  expect(await host.read(id, "outputs/stdout.log")).toBe("a\nb\n");
});

test("S0-92 a server takes an abandoned pipeline over and goes on with its steps", async () => {
  await using host = await makeFakeHost();
  const first = host.another();
  const steps = [stepOf("a", "a.sh"), stepOf("b", "b.sh")];
  const tasks = [fileOf("a.sh", "out a\nsleep 0.3\n"), fileOf("b.sh", "out b\n")];
  const { id } = await first.up({ steps }, { tasks });
  await first.runs.start({ sandbox: id });
  await first.die();
  await host.runs.recover({ adopt: true });
  const summary = await host.runs.wait(id);
  expect(summary.steps?.map((step) => step.status)).toEqual(["completed", "completed"]);
  expect(await host.read(id, "outputs/stdout.log")).toBe("a\nb\n");
});

test("a start that is aborted is a failed run without a container", async () => {
  await using host = await makeFakeHost();
  const { id } = await host.up();
  const signal = AbortSignal.abort(new Error("enough"));
  await expect(host.runs.start({ sandbox: id, task: SLOW }, { signal })).rejects.toThrow("enough");
  expect(await host.driver.list()).toEqual([]);
  expect(await host.run({ sandbox: id, task: fileOf("t.sh", "") })).toMatchObject({ status: "completed" });
});

test("aborting what started a pipeline does not end it", async () => {
  await using host = await makeFakeHost();
  const steps = [stepOf("a", "a.sh"), stepOf("b", "a.sh")];
  const { id } = await host.up({ steps }, { tasks: [fileOf("a.sh", "out a\nsleep 0.1\n")] });
  const abort = new AbortController();
  await host.runs.start({ sandbox: id }, { signal: abort.signal });
  abort.abort();
  expect(await host.runs.wait(id)).toMatchObject({ status: "completed" });
  expect(await host.read(id, "outputs/stdout.log")).toBe("a\na\n");
});
