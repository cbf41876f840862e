import { describe, expect, test } from "vitest";
import { ApiBed } from "../../test/server/api-bed.ts";

const IDLE = { idleTimeoutMs: 60_000 };

describe("unused sandboxes over HTTP", () => {
  test("show how long they may be unused, and when they were used last", async () => {
    await using bed = await ApiBed.open();
    const reply = await bed.post("/api/sandbox", { ...IDLE, autoResume: true });
    expect(reply.json).toMatchObject({ idleTimeoutMs: 60_000, autoResume: true, phase: null });
    expect(Date.parse(reply.json.lastActivityAt)).toBeLessThanOrEqual(Date.now());
    const info = await bed.client().sandboxes.get(reply.json.id);
    expect(info).toMatchObject({ idleTimeoutMs: 60_000, autoResume: true, lastActivityAt: expect.any(Date) });
    const refused = await bed.post("/api/sandbox", { idleTimeoutMs: 10 });
    expect(refused).toMatchObject({ status: 400, json: { error: { code: "VALIDATION_ERROR" } } });
  });

  test("S2-112 S2-113 S2-114 S2-115 have the operator's limits when they are sidecars", async () => {
    const env = { SANDBOX_MAX_IDLE_TIMEOUT: "120", SANDBOX_DEFAULT_MAX_LIFETIME: "600" };
    await using bed = await ApiBed.open({ env });
    const sidecar = { profile: "sidecar", idleTimeoutMs: 3_600_000 };
    const { json } = await bed.post("/api/sandbox", sidecar);
    expect(json.idleTimeoutMs).toBe(120_000);
    expect(Date.parse(json.expiresAt) - Date.parse(json.startedAt)).toBe(600_000);
  });

  test("S2-59 S2-61 are ended by an operator's request, and by nobody else's", async () => {
    await using bed = await ApiBed.open({ guarded: true });
    const [ada, boss] = [await bed.key("ada"), await bed.key("boss", { scopes: ["admin"] })];
    const idle = await bed.sandbox(ada, IDLE);
    const old = await bed.sandbox(ada);
    await bed.store.sandboxes.update(idle, { lastActivityAt: new Date(Date.now() - 120_000) });
    await bed.store.sandboxes.update(old, { expiresAt: new Date(Date.now() - 1) });
    expect(await bed.post("/api/reap", {}, { key: ada })).toMatchObject({ status: 403 });
    const found = { idle: [idle], expired: [old], busy: [], failed: [] };
    expect((await bed.post("/api/reap", { dryRun: true }, { key: boss })).json).toEqual(found);
    expect(await bed.store.sandboxes.get(idle)).toMatchObject({ state: "running" });
    expect(await bed.client(boss).reaper.reap()).toEqual(found);
    expect(await bed.store.sandboxes.get(idle)).toMatchObject({ state: "stopped", endReason: "idle" });
    expect((await bed.get(`/api/sandbox/${old}`, { key: ada })).status).toBeGreaterThanOrEqual(400);
  });

  test("come back when a command or a file is asked for, if they or the request say so", async () => {
    await using bed = await ApiBed.open();
    const willing = await bed.sandbox(undefined, { autoResume: true });
    const plain = await bed.sandbox();
    const client = bed.client();
    await client.files.write(willing, "note", Buffer.from("kept"));
    for (const id of [willing, plain]) await client.sandboxes.stop(id);
    expect(await bed.exec(plain, ["true"])).toMatchObject({
      status: 409,
      json: { error: { code: "CONTAINER_NOT_RUNNING", hint: expect.stringContaining("start") } },
    });
    expect(await client.files.stat(willing, "note")).toMatchObject({ size: 4 });
    const more = { autoResume: true, files: { "a.txt": "x" } };
    expect((await bed.exec(plain, ["cat", "a.txt"], more)).json).toMatchObject({ exitCode: 0, stdout: "x" });
    await client.sandboxes.stop(plain);
    expect(await client.execs.start(plain, { argv: ["true"], autoResume: true })).toBeDefined();
  });

  test("say how far they are while they come back", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox(undefined, { autoResume: true });
    await bed.client().sandboxes.stop(id);
    let goOn: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const { start } = bed.driver;
    bed.driver.start = async (...asked) => {
      await held;
      await start.apply(bed.driver, asked);
    };
    const phase = async () => (await bed.get(`/api/sandbox/${id}`)).json.phase;
    expect(await phase()).toBeNull();
    const exec = bed.exec(id, ["true"]);
    await expect.poll(phase).toEqual(expect.any(String));
    goOn();
    expect((await exec).json).toMatchObject({ exitCode: 0 });
    expect(await phase()).toBeNull();
  });
});
