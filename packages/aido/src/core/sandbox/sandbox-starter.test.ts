import { existsSync, statSync } from "node:fs";
import { AidoError } from "@aido/sdk/protocol";
import { describe, expect, test } from "vitest";
import { passUntil, type SandboxBed, sandboxBed } from "../../../test/sandbox/sandbox-bed.ts";
import { FakeDriver } from "../../drivers/fake/fake-driver.ts";
import type { DriverCapabilities } from "../driver/driver.ts";

describe("a new sandbox", () => {
  test("is running and ready with its profile's defaults", async () => {
    await using bed = sandboxBed();
    const info = await bed.sandboxes.create({ image: "python", ttlMs: 60_000, labels: { a: "1" } });
    expect(info).toMatchObject({
      id: "box00001",
      state: "running",
      image: "python:3.12-slim",
      workdir: "/work",
      network: "none",
      limits: { cpus: 1, memoryBytes: 512 * 1024 * 1024, pids: 100 },
      expiresAt: new Date("2026-01-01T00:01:00Z"),
    });
    expect(bed.driver.spec(info.id)).toMatchObject({
      name: "aido-box00001",
      user: undefined,
      privileged: false,
    });
    expect(statSync(bed.dataDir.sandbox(info.id)).mode & 0o777).toBe(0o700);
    expect(await bed.events(info.id)).toEqual(["sandbox.created", "container.created", "sandbox.started"]);
    expect(await bed.store.claims.list()).toEqual([]);
  });

  test("can be given up while the driver does not say what it can do", async () => {
    await using bed = sandboxBed();
    const sandboxes = bed.process("p2", { driver: new SilentDriver({ clock: bed.clock }) });
    for (const ask of [sandboxes.create.bind(sandboxes), sandboxes.prepare.bind(sandboxes)]) {
      const stop = new AbortController();
      const asked = ask({ image: "python" }, { signal: stop.signal });
      stop.abort(new AidoError("CANCELLED", "given up"));
      await expect(asked).rejects.toThrow("given up");
    }
    expect(await bed.store.sandboxes.list({})).toEqual([]);
  });

  test("takes its profile, then the configuration, then the request", async () => {
    await using bed = sandboxBed({ overrides: { limits: { cpus: 3, pids: 50 }, image: "configured:1" } });
    const info = await bed.sandboxes.create({
      profile: "agent",
      limits: { cpus: 2, memoryBytes: undefined },
    });
    expect(info).toMatchObject({
      image: "configured:1",
      workdir: "/workspace",
      network: "bridge",
      limits: { cpus: 2, pids: 50, memoryBytes: 2 * 1024 ** 3 },
    });
    expect(bed.driver.spec(info.id).name).toBe("coding-agent-box00001");
  });

  test("is given its numeric user by the driver; a name needs a password file", async () => {
    await using bed = sandboxBed();
    const numeric = await bed.sandboxes.create({ user: "12:34" });
    expect(bed.driver.spec(numeric.id).user).toEqual({ uid: 12, gid: 34 });
    await expect(bed.sandboxes.create({ user: "nobody-here" })).rejects.toMatchObject({
      code: "VALIDATION_ERROR",
    });
    expect(await bed.driver.list()).toHaveLength(1);
  });

  test.each([
    ["ensureImage", new AidoError("IMAGE_PULL_FAILED", "no route"), "IMAGE_PULL_FAILED"],
    ["create", new Error("boom"), "CONTAINER_CREATION_FAILED"],
    ["start", new Error("boom"), "CONTAINER_START_FAILED"],
  ] as const)("whose %s fails leaves nothing but its evidence", async (step, failure, code) => {
    await using bed = sandboxBed();
    bed.driver.failNext(step, failure);
    await expect(bed.sandboxes.create({})).rejects.toMatchObject({ code });
    await expectNothingLeft(bed);
  });

  test("whose supervisor never answers is given up in time and leaves nothing but its evidence", async () => {
    await using bed = sandboxBed();
    const start = bed.driver.start.bind(bed.driver);
    bed.driver.start = async (id) => {
      await start(id);
      bed.driver.stall(id, true);
    };
    const creating = bed.sandboxes.create({});
    creating.catch(() => undefined);
    await passUntil(bed, creating);
    await expect(creating).rejects.toMatchObject({ code: "DEADLINE_EXCEEDED" });
    await expectNothingLeft(bed);
  });

  test("whose user has a name gets the numbers of its own password file", async () => {
    await using bed = sandboxBed();
    const start = bed.driver.start.bind(bed.driver);
    bed.driver.start = async (id) => {
      await bed.driver
        .files(id)
        .writeFile("/", "/etc/passwd", "root:x:0:0::/:/bin/sh\napp:x:700:800::/:/bin/sh\n");
      await start(id);
    };
    const seen: number[] = [];
    bed.driver.addProgram("who", ({ uid, gid }) => {
      seen.push(uid, gid);
      return 0;
    });
    const { id } = await bed.sandboxes.create({ user: "app" });
    expect(bed.driver.spec(id).user).toBeUndefined();
    const exec = await bed.execs.start(id, { argv: ["who"] });
    await bed.execs.wait(id, exec.id);
    expect(seen).toEqual([700, 800]);
    await expect(bed.sandboxes.create({ user: "other" })).rejects.toMatchObject({ code: "VALIDATION_ERROR" });
  });

  test("that is cancelled while it starts leaves nothing", async () => {
    await using bed = sandboxBed();
    const stop = new AbortController();
    const creating = bed.sandboxes.create({}, { signal: stop.signal });
    stop.abort();
    await expect(creating).rejects.toThrow();
    expect(await bed.driver.list()).toEqual([]);
    expect(await bed.sandboxes.list()).toEqual([]);
  });

  test("with a name that is taken is refused before anything is made", async () => {
    await using bed = sandboxBed();
    await bed.sandboxes.create({ name: "one" });
    await expect(bed.sandboxes.create({ name: "one" })).rejects.toMatchObject({
      code: "CONTAINER_NAME_TAKEN",
    });
    expect(await bed.driver.list()).toHaveLength(1);
    expect(existsSync(bed.dataDir.sandbox("box00002"))).toBe(false);
    expect(await bed.store.claims.list()).toEqual([]);
  });

  test("with an isolation that the machine lacks is refused, with what is missing", async () => {
    await using bed = sandboxBed({
      capabilities: { warnings: ["The runtime runsc for gVisor is not installed."] },
    });
    await expect(bed.sandboxes.create({ isolation: "gvisor" })).rejects.toMatchObject({
      code: "ISOLATION_UNAVAILABLE",
      message: expect.stringContaining("runsc"),
      hint: expect.stringContaining("container"),
    });
    await expect(bed.sandboxes.create({ network: "host" })).rejects.toMatchObject({ code: "UNSUPPORTED" });
    await expect(bed.sandboxes.create({ privileged: true })).rejects.toMatchObject({ code: "UNSUPPORTED" });
    expect(await bed.store.sandboxes.list()).toEqual([]);
  });
});

async function expectNothingLeft(bed: SandboxBed): Promise<void> {
  expect(await bed.driver.list()).toEqual([]);
  expect(await bed.sandboxes.list()).toEqual([]);
  expect(existsSync(bed.dataDir.sandbox("box00001"))).toBe(false);
  expect((await bed.events("box00001")).slice(-2)).toEqual(["sandbox.failed", "sandbox.destroyed"]);
  expect(await bed.evidenceOk("box00001")).toBe(true);
  expect(await bed.store.claims.list()).toEqual([]);
}

/** An engine that takes the question and never answers. */
class SilentDriver extends FakeDriver {
  override capabilities(): Promise<DriverCapabilities> {
    return new Promise(() => undefined);
  }
}
