import { isAidoError } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { type DriverSuite, specOf, until } from "./driver-backend.ts";
import { launch } from "./launch.ts";

export function lifeContract({ make, isolates }: DriverSuite): void {
  test("says what it is and what it can do", async () => {
    await using backend = await make();
    const capabilities = await backend.driver.capabilities();
    expect(capabilities.version).not.toBe("");
    expect(capabilities.isolations).toContain("container");
    expect(capabilities.networks).toContain("none");
  });

  test("tells the images it has from those it lacks", async () => {
    await using backend = await make();
    const { driver } = backend;
    expect(await driver.hasImage(specOf(backend).image)).toBe(true);
    if (isolates) expect(await driver.hasImage("registry.invalid/nobody/nothing:0")).toBe(false);
  });

  test("S0-2 S0-3 S0-41 a sandbox is made, started, stopped, started again and removed", async () => {
    await using backend = await make();
    const { driver } = backend;
    const spec = specOf(backend);
    const created = await driver.create(spec);
    expect(created).toMatchObject({ sandboxId: spec.sandboxId, state: "created", exitCode: undefined });
    expect(created.user.uid).toBeGreaterThan(0);
    await driver.start(spec.sandboxId);
    const running = await driver.inspect(spec.sandboxId);
    expect(running).toMatchObject({ state: "running", containerId: created.containerId });
    expect(running?.startedAt).toBeInstanceOf(Date);
    await driver.stop(spec.sandboxId, 2_000);
    const stopped = await driver.inspect(spec.sandboxId);
    expect(stopped).toMatchObject({ state: "exited", outOfMemory: false });
    expect(stopped?.finishedAt).toBeInstanceOf(Date);
    await driver.start(spec.sandboxId);
    expect(await driver.inspect(spec.sandboxId)).toMatchObject({ state: "running", exitCode: undefined });
    await driver.remove(spec.sandboxId);
    expect(await driver.inspect(spec.sandboxId)).toBeUndefined();
  });

  test("a stop ends the supervisor in good order: its exit code is 0", async () => {
    await using backend = await make();
    const { id } = await launch(backend);
    await backend.driver.stop(id, 5_000);
    expect(await backend.driver.inspect(id)).toMatchObject({ state: "exited", exitCode: 0 });
  });

  test("creating, starting, stopping and removing twice does no harm", async () => {
    await using backend = await make();
    const { driver } = backend;
    const spec = specOf(backend);
    const first = await driver.create(spec);
    expect((await driver.create(spec)).containerId).toBe(first.containerId);
    await driver.start(spec.sandboxId);
    await driver.start(spec.sandboxId);
    expect(await driver.create(spec)).toMatchObject({ containerId: first.containerId, state: "running" });
    await driver.stop(spec.sandboxId, 2_000);
    await driver.stop(spec.sandboxId, 2_000);
    await driver.remove(spec.sandboxId);
    await driver.remove(spec.sandboxId);
    await driver.stop(spec.sandboxId, 2_000);
    expect(await driver.list()).toEqual([]);
  });

  test("two creates at once make one sandbox", async () => {
    await using backend = await make();
    const spec = specOf(backend);
    const [one, other] = await Promise.all([backend.driver.create(spec), backend.driver.create(spec)]);
    expect(one.containerId).toBe(other.containerId);
    expect(await backend.driver.list()).toHaveLength(1);
  });

  test("S4-28 a sandbox can be removed in every state", async () => {
    await using backend = await make();
    const { driver } = backend;
    const created = specOf(backend);
    await driver.create(created);
    const running = await launch(backend);
    const stopped = await launch(backend);
    await driver.stop(stopped.id, 2_000);
    expect(await driver.list()).toHaveLength(3);
    await driver.remove(created.sandboxId);
    await driver.remove(running.id);
    await driver.remove(stopped.id);
    expect(await driver.list()).toEqual([]);
  });

  test("one that is given up while it is made is gone once it was removed", async () => {
    await using backend = await make();
    const { driver } = backend;
    for (let ms = 0; ms < 24; ms += 1) {
      const spec = specOf(backend);
      const giveUp = new AbortController();
      const making = driver.create(spec, giveUp.signal).catch(() => undefined);
      setTimeout(() => giveUp.abort(new Error("enough")), ms);
      await making;
      await driver.remove(spec.sandboxId);
    }
    // Whatever the backend still had to do for them, it has done before it has made and removed another.
    const last = specOf(backend);
    await driver.create(last);
    await driver.remove(last.sandboxId);
    expect(await driver.list()).toEqual([]);
  });

  test("it lists the sandboxes of its own scope and no others", async () => {
    await using backend = await make();
    const other = await backend.otherScope();
    const mine = specOf(backend);
    const theirs = specOf(backend);
    await backend.driver.create(mine);
    await other.create(theirs);
    expect((await backend.driver.list()).map((each) => each.sandboxId)).toEqual([mine.sandboxId]);
    expect((await other.list()).map((each) => each.sandboxId)).toEqual([theirs.sandboxId]);
    expect(await backend.driver.inspect(theirs.sandboxId)).toBeUndefined();
    await backend.driver.remove(theirs.sandboxId);
    expect(await other.inspect(theirs.sandboxId)).toMatchObject({ state: "created" });
  });

  test("the watch tells the end of a sandbox, and returns when it is aborted", async () => {
    await using backend = await make();
    const ended: string[] = [];
    const watching = new AbortController();
    const watch = backend.driver.watch((id) => ended.push(id), watching.signal);
    const { id } = await launch(backend);
    await backend.driver.stop(id, 2_000);
    await until("the end is told", () => ended.includes(id));
    watching.abort();
    await watch;
  });

  test("S0-83 a deadline passes inside: the sandbox ends with 124 and the watch tells it", async () => {
    await using backend = await make();
    const ended: string[] = [];
    const watching = new AbortController();
    const watch = backend.driver.watch((id) => ended.push(id), watching.signal);
    const { id } = await launch(backend, { deadlineMs: 300 });
    await until("the end is told", () => ended.includes(id));
    await until("it is seen as ended", async () => (await backend.driver.inspect(id))?.state === "exited");
    expect(await backend.driver.inspect(id)).toMatchObject({ exitCode: 124, outOfMemory: false });
    watching.abort();
    await watch;
  });

  test("what is not there cannot be started or measured", async () => {
    await using backend = await make();
    const { driver } = backend;
    await expect(driver.start("sbx_missing")).rejects.toSatisfy((error) =>
      isAidoError(error, "CONTAINER_NOT_FOUND"),
    );
    await expect(driver.usage("sbx_missing")).rejects.toSatisfy((error) => isAidoError(error));
    await expect(driver.connect("sbx_missing")).rejects.toSatisfy((error) => isAidoError(error));
    expect(await driver.inspect("sbx_missing")).toBeUndefined();
  });

  test.runIf(isolates)("an isolation that the machine lacks is refused, not replaced", async ({ skip }) => {
    await using backend = await make();
    const { isolations } = await backend.driver.capabilities();
    skip(isolations.includes("kata"), "this machine has kata");
    const spec = specOf(backend, { isolation: "kata" });
    await expect(backend.driver.create(spec)).rejects.toSatisfy((error) =>
      isAidoError(error, "ISOLATION_UNAVAILABLE"),
    );
    expect(await backend.driver.list()).toEqual([]);
  });

  test.runIf(isolates)("a new process finds what an earlier one started, and goes on with it", async () => {
    await using backend = await make();
    const { id, client } = await launch(backend);
    await client[Symbol.asyncDispose]();
    await backend.driver.close();
    const later = await backend.reopen();
    expect(await later.list()).toMatchObject([{ sandboxId: id, state: "running" }]);
    await later.stop(id, 2_000);
    expect(await later.inspect(id)).toMatchObject({ state: "exited" });
  });
}
