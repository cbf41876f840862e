import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { passUntil, sandboxBed } from "../../../test/sandbox/sandbox-bed.ts";

test("a sandbox whose maker asks for no limit cannot fill the host's disk with files or output", async () => {
  await using bed = sandboxBed();
  const { limits } = await bed.sandboxes.create({});
  expect(limits).toMatchObject({ diskBytes: 10 * 1024 ** 3, outputBytes: 4 * 1024 ** 3 });
});

describe("stop and start", () => {
  test("a stop lets what reads the workspace come to its end, but not for ever", async () => {
    let finish = () => {};
    const reading = new Promise<void>((resolve) => {
      finish = resolve;
    });
    await using bed = sandboxBed({ settled: () => reading });
    const [one, two] = [await bed.sandboxes.create({}), await bed.sandboxes.create({})];
    const stopping = bed.sandboxes.stop(one.id);
    await bed.clock.advance(9_000);
    expect(await bed.store.sandboxes.get(one.id)).toMatchObject({ state: "running" });
    await bed.clock.advance(1_000);
    expect(await stopping).toMatchObject({ state: "stopped" });
    const second = bed.sandboxes.stop(two.id);
    finish();
    expect(await second).toMatchObject({ state: "stopped" });
  });

  test("keep the container and its files", async () => {
    await using bed = sandboxBed();
    const { id, containerId } = await bed.sandboxes.create({ name: "keep" });
    await bed.driver.files(id).writeFile("/", "/work/a", "x");
    expect(await bed.sandboxes.stop("keep")).toMatchObject({ state: "stopped", endReason: "stopped" });
    expect(await bed.sandboxes.stop("keep")).toMatchObject({ state: "stopped" });
    const again = await bed.sandboxes.start("keep");
    expect(again).toMatchObject({
      state: "running",
      containerId,
      endReason: undefined,
      stoppedAt: undefined,
    });
    expect(await bed.driver.files(id).readFile("/", "/work/a")).toEqual(Buffer.from("x"));
    expect(await bed.sandboxes.start("keep")).toMatchObject({ state: "running" });
  });

  test("make no new container for the files of one that has vanished, running or stopped", async () => {
    await using bed = sandboxBed();
    const running = await bed.sandboxes.create({ autoResume: true });
    const stopped = await bed.sandboxes.create({ autoResume: true });
    await bed.sandboxes.stop(stopped.id);
    for (const { id } of [running, stopped]) {
      await bed.driver.remove(id);
      expect(await bed.sandboxes.get(id)).toMatchObject({ state: "stopped" });
      const lost = { code: "CONTAINER_LOST", hint: expect.stringContaining("destroy") };
      await expect(bed.sandboxes.start(id)).rejects.toMatchObject(lost);
      await expect(bed.execs.start(id, { argv: ["true"] })).rejects.toMatchObject(lost);
    }
    expect(await bed.driver.list()).toEqual([]);
  });

  test("make a new container when the files lie outside of it, or there never were any", async () => {
    await using bed = sandboxBed();
    const named = await bed.sandboxes.create({ workspace: "mine" });
    await bed.driver.files(named.id).writeFile("/", "/work/a", "x");
    await bed.driver.remove(named.id);
    expect((await bed.sandboxes.start(named.id)).containerId).not.toBe(named.containerId);
    expect(await bed.driver.files(named.id).readFile("/", "/work/a")).toEqual(Buffer.from("x"));
    const { id } = await bed.sandboxes.prepare({});
    expect(await bed.sandboxes.start(id)).toMatchObject({ state: "running" });
  });

  test("the variables of the image lie beneath those of the sandbox and of the exec", async () => {
    const imageEnv = { PATH: "/opt/bin", TOOL: "image", ONE: "image", TWO: "image", "odd.name": "x" };
    await using bed = sandboxBed({ imageEnv });
    const { id } = await bed.sandboxes.create({ env: { ONE: "sandbox", TWO: "sandbox" } });
    await bed.sandboxes.stop(id);
    await bed.sandboxes.start(id);
    await bed.execs.start(id, { argv: ["true"], env: { TWO: "exec" } });
    const env = ["PATH=/opt/bin", "HOME=/work", "LANG=C.UTF-8", "TOOL=image", "ONE=sandbox", "TWO=exec"];
    expect(bed.driver.started(id).find(({ argv }) => argv[0] === "true")?.env).toEqual(env);
  });

  test("a failed start leaves the sandbox stopped with its files", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({});
    await bed.sandboxes.stop(id);
    bed.driver.failNext("start", new Error("boom"));
    await expect(bed.sandboxes.start(id)).rejects.toMatchObject({ code: "CONTAINER_START_FAILED" });
    expect(await bed.sandboxes.get(id)).toMatchObject({ state: "stopped" });
    expect(await bed.driver.list()).toMatchObject([{ state: "exited" }]);
    expect(await bed.sandboxes.start(id)).toMatchObject({ state: "running" });
  });
});

describe("destroy", () => {
  test("S0-58 S0-59 S0-60 removes container, directory and secrets, and keeps the evidence", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({ name: "one", env: { KEY: "secret" } });
    const signed = { snapshotUrl: "https://user.example/a?signature=secret", snapshotSha256: "00" };
    await bed.store.sandboxes.update(id, signed);
    const key = { sandboxId: id, username: "", fingerprint: "SHA256:1" };
    const line = { type: "ssh-ed25519", publicKey: "ssh-ed25519 AAAA", comment: "" };
    await bed.store.sshKeys.add({ ...key, ...line, createdAt: bed.clock.now() });
    await bed.sandboxes.destroy("one");
    expect(await bed.store.sshKeys.list(id)).toEqual([]);
    expect(await bed.driver.list()).toEqual([]);
    expect(existsSync(bed.dataDir.sandbox(id))).toBe(false);
    expect(existsSync(join(bed.dataDir.evidence, `${id}.log`))).toBe(true);
    expect(await bed.evidenceOk(id)).toBe(true);
    expect(await bed.store.sandboxes.get(id)).toMatchObject({
      state: "deleted",
      env: {},
      imageEnv: {},
      supervisorToken: "",
      snapshotUrl: undefined,
      snapshotSha256: undefined,
    });
    await expect(bed.sandboxes.get(id)).rejects.toMatchObject({ code: "CONTAINER_NOT_FOUND" });
    await bed.sandboxes.create({ name: "one" });
  });

  test("is idempotent by id and refuses what never was", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({});
    await bed.sandboxes.destroy(id);
    await bed.sandboxes.destroy(id);
    expect((await bed.events(id)).filter((event) => event === "sandbox.destroyed")).toHaveLength(1);
    await expect(bed.sandboxes.destroy("never")).rejects.toMatchObject({ code: "CONTAINER_NOT_FOUND" });
  });

  test("works in every state", async () => {
    await using bed = sandboxBed();
    const prepared = await bed.sandboxes.prepare({});
    const stopped = await bed.sandboxes.create({});
    await bed.sandboxes.stop(stopped.id);
    const lost = await bed.sandboxes.create({});
    await bed.driver.remove(lost.id);
    for (const { id } of [prepared, stopped, lost]) await bed.sandboxes.destroy(id);
    expect(await bed.sandboxes.list()).toEqual([]);
    expect(await bed.driver.list()).toEqual([]);
  });

  test("by two processes at once removes it once and satisfies both", async () => {
    await using bed = sandboxBed();
    const other = bed.process("p2");
    const { id } = await bed.sandboxes.create({});
    const both = Promise.all([bed.sandboxes.destroy(id), other.destroy(id)]);
    await passUntil(bed, both);
    await both;
    expect((await bed.events(id)).filter((event) => event === "sandbox.destroyed")).toHaveLength(1);
    expect(await bed.driver.list()).toEqual([]);
  });

  test("that the driver refuses changes nothing and can be tried again", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({});
    bed.driver.failNext("remove", new Error("device busy"));
    await expect(bed.sandboxes.destroy(id)).rejects.toMatchObject({ code: "CONTAINER_REMOVAL_FAILED" });
    expect(await bed.sandboxes.get(id)).toMatchObject({ state: "running" });
    await bed.sandboxes.destroy(id);
    expect(await bed.driver.list()).toEqual([]);
  });

  test("of a sandbox that another process is starting wins over the start", async () => {
    await using bed = sandboxBed();
    const other = bed.process("p2");
    const prepared = await bed.sandboxes.prepare({});
    const start = bed.driver.start.bind(bed.driver);
    bed.driver.start = async (id) => {
      await start(id);
      await other.destroy(id);
    };
    await expect(bed.sandboxes.launch(prepared.id)).rejects.toThrow();
    expect(await bed.driver.list()).toEqual([]);
    expect(await bed.store.sandboxes.get(prepared.id)).toMatchObject({ state: "deleted" });
  });
});

describe("two processes", () => {
  test("that start one sandbox at once: one starts it, the other is told", async () => {
    await using bed = sandboxBed();
    const other = bed.process("p2");
    const { id } = await bed.sandboxes.create({});
    await bed.sandboxes.stop(id);
    const results = await Promise.allSettled([bed.sandboxes.start(id), other.start(id)]);
    const refused = results.filter((result) => result.status === "rejected");
    expect(refused).toHaveLength(1);
    expect(refused[0]?.reason).toMatchObject({
      code: "CONTAINER_BUSY",
      message: expect.stringContaining("being started by another process"),
    });
    expect(await bed.sandboxes.get(id)).toMatchObject({ state: "running" });
  });

  test("with different drivers do not touch each other's sandboxes", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({});
    const foreign = new Proxy(bed.driver, {
      get: (target, key) => {
        if (key === "name") return "other";
        if (key === "list") return async () => [];
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    const other = bed.process("p2", { driver: foreign });
    expect(await other.list()).toMatchObject([{ id, state: "running", driver: "fake" }]);
    for (const refused of [other.start(id), other.destroy(id), other.resolveRunning(id)]) {
      await expect(refused).rejects.toMatchObject({
        code: "RUNTIME_UNAVAILABLE",
        hint: expect.stringContaining("--driver fake"),
      });
    }
    expect(await bed.sandboxes.get(id)).toMatchObject({ state: "running" });
  });
});

describe("a reference", () => {
  test("is an id, a name or a unique beginning of an id", async () => {
    await using bed = sandboxBed();
    const one = await bed.sandboxes.create({ name: "web", id: "abcd1" });
    await bed.sandboxes.create({ id: "abce2" });
    for (const reference of ["abcd1", "web", "abcd"]) {
      expect(await bed.sandboxes.get(reference)).toMatchObject({ id: one.id });
    }
    await expect(bed.sandboxes.get("abc")).rejects.toMatchObject({
      code: "CONTAINER_AMBIGUOUS",
      message: expect.stringContaining("abcd1, abce2"),
    });
    await expect(bed.sandboxes.get("a\u001b[31m")).rejects.toMatchObject({
      code: "CONTAINER_NOT_FOUND",
      message: expect.not.stringContaining("\u001b"),
    });
  });

  test("to a sandbox that cannot take commands says why", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({ ttlMs: 1000 });
    const stopped = await bed.sandboxes.create({});
    await bed.sandboxes.stop(stopped.id);
    await expect(bed.sandboxes.resolveRunning(stopped.id)).rejects.toMatchObject({
      code: "CONTAINER_NOT_RUNNING",
      hint: expect.stringContaining("start"),
    });
    expect(await bed.sandboxes.resolveRunning(id)).toMatchObject({ id });
    await bed.clock.advance(1000);
    await expect(bed.sandboxes.resolveRunning(id)).rejects.toMatchObject({ code: "CONTAINER_EXPIRED" });
  });
});

describe("a list", () => {
  test("goes on after a sandbox that was destroyed between two pages", async () => {
    await using bed = sandboxBed();
    for (const id of ["aa1", "aa2", "aa3", "aa4"]) await bed.sandboxes.create({ id });
    const page = await bed.sandboxes.list({ limit: 2 });
    expect(page.map(({ id }) => id)).toEqual(["aa4", "aa3"]);
    await bed.sandboxes.destroy("aa3");
    expect((await bed.sandboxes.list({ before: "aa3" })).map(({ id }) => id)).toEqual(["aa2", "aa1"]);
    await expect(bed.sandboxes.list({ before: "never" })).rejects.toMatchObject({
      code: "CONTAINER_NOT_FOUND",
    });
  });
});

describe("ttl and stats", () => {
  test("a new ttl counts from now and reaches the supervisor", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({ ttlMs: 1000 });
    await bed.clock.advance(900);
    expect(await bed.sandboxes.setTtl(id, 5000)).toMatchObject({
      expiresAt: new Date(bed.clock.now().getTime() + 5000),
    });
    await bed.clock.advance(4000);
    expect(await bed.sandboxes.get(id)).toMatchObject({ state: "running" });
    expect(await bed.sandboxes.setTtl(id, 0)).toMatchObject({ expiresAt: undefined });
    await bed.clock.advance(1_000_000);
    expect(await bed.sandboxes.get(id)).toMatchObject({ state: "running" });
    await expect(bed.sandboxes.setTtl(id, -1)).rejects.toMatchObject({ code: "VALIDATION_ERROR" });
  });

  test("stats are read from the driver", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create({});
    expect(await bed.sandboxes.stats(id)).toEqual({
      cpuMs: 10,
      memoryBytes: 1_048_576,
      pids: 1,
      at: bed.clock.now(),
    });
  });
});
