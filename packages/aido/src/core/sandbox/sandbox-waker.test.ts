import { AidoError } from "@aido/sdk/protocol";
import { describe, expect, test } from "vitest";
import { passUntil, sandboxBed } from "../../../test/sandbox/sandbox-bed.ts";
import { SandboxWaker } from "./sandbox-waker.ts";

describe("a stopped sandbox", () => {
  test("is started by a command when it is made so, and keeps its id and its files", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({ autoResume: true });
    const put = await bed.execs.start(id, { argv: ["put", "/note", "kept"] });
    await bed.execs.wait(id, put.id);
    await bed.sandboxes.stop(id);
    const exec = await bed.execs.start(id, { argv: ["cat", "/note"] });
    expect(await bed.execs.wait(id, exec.id)).toMatchObject({
      status: "exited",
      exitCode: 0,
      stdoutBytes: 5,
    });
    expect(await bed.sandboxes.get(id)).toMatchObject({ id, state: "running", endReason: undefined });
  });

  test("is started by a request that asks for it, and by no request that asks for the opposite", async () => {
    await using bed = sandboxBed();
    const plain = await bed.sandboxes.create({});
    const willing = await bed.sandboxes.create({ autoResume: true });
    for (const { id } of [plain, willing]) await bed.sandboxes.stop(id);
    const not = bed.execs.start(willing.id, { argv: ["true"], autoResume: false });
    await expect(not).rejects.toMatchObject({ code: "CONTAINER_NOT_RUNNING" });
    await bed.execs.start(plain.id, { argv: ["true"], autoResume: true });
    expect(await bed.sandboxes.get(plain.id)).toMatchObject({ state: "running" });
  });

  test("stays stopped otherwise, and the error says how to start it", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({});
    await bed.sandboxes.stop(id);
    await expect(bed.execs.start(id, { argv: ["true"] })).rejects.toMatchObject({
      code: "CONTAINER_NOT_RUNNING",
      hint: expect.stringContaining(`aido sandbox start ${id}`),
    });
    expect(await bed.sandboxes.get(id)).toMatchObject({ state: "stopped" });
  });

  test("is started once when two come at once, and both are told", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({ autoResume: true });
    await bed.sandboxes.stop(id);
    const seen: string[] = [];
    const [one, two] = [0, 1].map(() =>
      bed.sandboxes.resolveRunning(id, { onProgress: (phase) => seen.push(phase) }),
    );
    expect(await one).toMatchObject({ id, state: "running" });
    expect(await two).toMatchObject({ id, state: "running" });
    expect(seen.filter((step) => step === "starting")).toHaveLength(2);
    expect((await bed.events(id)).filter((event) => event === "sandbox.started")).toHaveLength(2);
    expect((await bed.sandboxes.get(id)).phase).toBeUndefined();
  });

  test("shows how far its start is", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({});
    const record = await bed.store.sandboxes.get(id);
    if (record === undefined) throw new Error("not created");
    let tell: (phase: string) => void = () => undefined;
    let end: () => void = () => undefined;
    const waker = new SandboxWaker({
      sandboxes: bed.store.sandboxes,
      clock: bed.clock,
      start: async (_id, { onProgress }) => {
        tell = onProgress;
        await new Promise<void>((resolve) => {
          end = resolve;
        });
        return record;
      },
    });
    const seen: string[] = [];
    const started = waker.start(id, { onProgress: (phase) => seen.push(phase) });
    await bed.clock.advance(0);
    expect(waker.phase(id)).toBe("starting");
    tell("restoring files");
    expect(waker.phase(id)).toBe("restoring files");
    end();
    await started;
    expect(seen).toEqual(["starting", "restoring files"]);
    expect(waker.phase(id)).toBeUndefined();
  });

  test("that another process is starting is waited for", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({ autoResume: true });
    await bed.sandboxes.stop(id);
    const until = new Date(bed.clock.now().getTime() + 60_000);
    await bed.store.claims.take({ sandboxId: id, holder: "p9#1", purpose: "launch", until }, bed.clock.now());
    const woken = bed.sandboxes.resolveRunning(id);
    await bed.clock.advance(1000);
    await bed.driver.start(id);
    await bed.store.sandboxes.transition(id, "stopped", "running");
    await bed.store.claims.release(id, "p9#1");
    await passUntil(bed, woken);
    expect(await woken).toMatchObject({ id, state: "running" });
  });

  test("whose start fails says why, to all who wait, and can be tried again", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({ autoResume: true });
    await bed.sandboxes.stop(id);
    bed.driver.failNext("start", new AidoError("RUNTIME_UNAVAILABLE", "no engine"));
    const both = await Promise.allSettled([
      bed.sandboxes.resolveRunning(id),
      bed.sandboxes.resolveRunning(id),
    ]);
    expect(both).toMatchObject([
      { status: "rejected", reason: { code: "RUNTIME_UNAVAILABLE" } },
      { status: "rejected", reason: { code: "RUNTIME_UNAVAILABLE" } },
    ]);
    expect(await bed.sandboxes.resolveRunning(id)).toMatchObject({ state: "running" });
  });

  test("is not started for one who has left, and goes on for the others", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({ autoResume: true });
    await bed.sandboxes.stop(id);
    const leaves = new AbortController();
    const left = bed.sandboxes.resolveRunning(id, { signal: leaves.signal });
    const stays = bed.sandboxes.resolveRunning(id);
    leaves.abort(new AidoError("CANCELLED", "left"));
    await expect(left).rejects.toMatchObject({ code: "CANCELLED" });
    expect(await stays).toMatchObject({ state: "running" });
  });

  test("whose time is over is not brought back", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({ autoResume: true, ttlMs: 1000 });
    await bed.sandboxes.stop(id);
    await bed.clock.advance(2000);
    await expect(bed.execs.start(id, { argv: ["true"] })).rejects.toMatchObject({
      code: "CONTAINER_EXPIRED",
    });
  });
});
