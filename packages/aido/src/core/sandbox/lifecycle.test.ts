import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { passUntil, sandboxBed } from "../../../test/sandbox/sandbox-bed.ts";

describe("a prepared sandbox", () => {
  test("S0-34 has a record and a directory, and no container", async () => {
    await using bed = sandboxBed();
    const mounts = (id: string) => [{ source: `/data/${id}`, target: "/work", readOnly: false }];
    const record = await bed.sandboxes.prepare({ image: "node" }, { mounts });
    expect(record).toMatchObject({
      state: "pending",
      image: "node:20-slim",
      mounts: [{ source: `/data/${record.id}`, target: "/work" }],
    });
    expect(existsSync(bed.dataDir.sandbox(record.id))).toBe(true);
    expect(await bed.driver.list()).toEqual([]);
    await bed.sandboxes.fetchImage(record.id);
  });

  test("S0-76 is launched with what the launch says, its ttl from there", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.prepare({ ttlMs: 5000 });
    await bed.clock.advance(10_000);
    const mounts = [{ source: bed.dataDir.root, target: "/task", readOnly: true }];
    const running = await bed.sandboxes.launch(id, { mounts, network: "bridge", actor: "alice" });
    expect(running).toMatchObject({
      state: "running",
      network: "bridge",
      expiresAt: new Date(bed.clock.now().getTime() + 5000),
    });
    expect(bed.driver.spec(id)).toMatchObject({ mounts, network: "bridge" });
    expect(await bed.store.sandboxes.get(id)).toEqual(running);
    await expect(bed.sandboxes.launch(id)).rejects.toMatchObject({ code: "CONTAINER_BUSY" });
  });

  test("whose launch fails keeps record and directory and can be launched again", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.prepare({});
    bed.driver.failNext("start", new Error("boom"));
    await expect(bed.sandboxes.launch(id)).rejects.toMatchObject({ code: "CONTAINER_START_FAILED" });
    expect(await bed.sandboxes.get(id)).toMatchObject({ state: "stopped", endReason: "failed" });
    expect(await bed.driver.list()).toEqual([]);
    expect(existsSync(bed.dataDir.sandbox(id))).toBe(true);
    expect(await bed.sandboxes.launch(id)).toMatchObject({ state: "running", endReason: undefined });
  });

  test("gets a fresh container at each launch", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.prepare({});
    const first = await bed.sandboxes.launch(id);
    await bed.sandboxes.stop(id);
    const second = await bed.sandboxes.launch(id);
    expect(second.containerId).not.toBe(first.containerId);
    expect(await bed.driver.list()).toHaveLength(1);
  });
});

describe("finish", () => {
  test("removes the container, keeps the directory and the first reason, and is idempotent", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.prepare({ ttlMs: 60_000 });
    await bed.sandboxes.launch(id);
    expect(await bed.sandboxes.finish(id, "completed", { graceMs: 0 })).toMatchObject({
      state: "stopped",
      endReason: "completed",
      expiresAt: undefined,
      containerId: undefined,
    });
    expect(await bed.sandboxes.finish(id, "failed")).toMatchObject({ endReason: "completed" });
    expect(await bed.driver.list()).toEqual([]);
    expect(existsSync(bed.dataDir.sandbox(id))).toBe(true);
  });

  test("of a sandbox that was destroyed meanwhile says that it is deleted", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({});
    await bed.sandboxes.destroy(id);
    expect(await bed.sandboxes.finish(id, "completed")).toMatchObject({ state: "deleted" });
  });
});

describe("untilEnded", () => {
  test("resolves when the ttl ends the sandbox", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.prepare({ ttlMs: 5000 });
    await bed.store.runs.put({
      sandboxId: id,
      status: "running",
      task: "a",
      execId: undefined,
      autoDestroy: true,
      startedAt: undefined,
      completedAt: undefined,
    });
    await bed.sandboxes.launch(id);
    const ended = bed.sandboxes.untilEnded(id, new AbortController().signal);
    await passUntil(bed, ended);
    expect(await ended).toMatchObject({ state: "stopped", endReason: "timeout" });
  });

  test("resolves when another process stops it, and stops waiting when asked", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({});
    const stop = new AbortController();
    const abandoned = bed.sandboxes.untilEnded(id, stop.signal);
    stop.abort(new Error("enough"));
    await expect(abandoned).rejects.toThrow("enough");
    const ended = bed.sandboxes.untilEnded(id, new AbortController().signal);
    await bed.process("p2").stop(id);
    await passUntil(bed, ended);
    expect(await ended).toMatchObject({ endReason: "stopped" });
  });
});

describe("the disk limit", () => {
  test("ends a sandbox that wrote too much, with its reason and evidence", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({ limits: { diskBytes: 1000 } });
    await bed.driver.files(id).writeFile("/", "/work/small", "x".repeat(500));
    await bed.clock.advance(3000);
    expect(await bed.sandboxes.get(id)).toMatchObject({ state: "running" });
    await bed.driver.files(id).writeFile("/", "/work/big", "x".repeat(1000));
    const ended = bed.sandboxes.untilEnded(id, new AbortController().signal);
    await passUntil(bed, ended);
    expect(await ended).toMatchObject({ state: "stopped", endReason: "disk_full" });
    expect(await bed.events(id)).toContain("limit.disk");
    expect(await bed.driver.list()).toMatchObject([{ state: "exited" }]);
  });

  test("is left to a driver that enforces it", async () => {
    const enforced = { cpus: true, memory: true, pids: true, disk: true };
    await using bed = sandboxBed({ capabilities: { enforced } });
    const { id } = await bed.sandboxes.create({ limits: { diskBytes: 10 } });
    await bed.driver.files(id).writeFile("/", "/work/big", "x".repeat(1000));
    await bed.clock.advance(5000);
    expect(await bed.sandboxes.get(id)).toMatchObject({ state: "running" });
  });
});

describe("what a sandbox left in its directory", () => {
  test("is removed however deep, odd or locked it is, and links are not followed", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({});
    const outside = join(bed.dataDir.root, "outside");
    mkdirSync(outside);
    writeFileSync(join(outside, "precious"), "");
    const mounts = bed.dataDir.mounts(id);
    mkdirSync(mounts);
    symlinkSync(outside, join(mounts, "link"));
    mkdirSync(join(mounts, "locked"));
    writeFileSync(join(mounts, "locked", "file"), "");
    chmodSync(join(mounts, "locked"), 0);
    writeFileSync(Buffer.concat([Buffer.from(`${mounts}/`), Buffer.from([0xff, 0xfe, 0x0a])]), "");
    const { chdir, cwd } = process;
    const home = cwd();
    try {
      chdir(mounts);
      for (let depth = 0; depth < 60; depth++) {
        mkdirSync("d".repeat(200));
        chdir("d".repeat(200));
      }
    } finally {
      chdir(home);
    }
    await bed.sandboxes.destroy(id);
    expect(existsSync(bed.dataDir.sandbox(id))).toBe(false);
    expect(existsSync(`${bed.dataDir.sandbox(id)}.removing`)).toBe(false);
    expect(existsSync(join(outside, "precious"))).toBe(true);
  });
});
