import { createSandboxBody, sandboxReply } from "@aido/sdk/schemas";
import { describe, expect, test } from "vitest";
import { ApiBed } from "../../test/server/api-bed.ts";

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe("sandboxes over HTTP", () => {
  test("S3-10 S3-12 S3-13 S3-14 S3-15 S3-27 a sandbox is made and says when it ends", async () => {
    await using bed = await ApiBed.open();
    const reply = await bed.post("/api/sandbox", {
      image: "@ai-sandbox/python",
      options: { timeout: 30_000, memoryLimit: "256m", cpuLimit: "0.5" },
    });
    expect(reply.status).toBe(201);
    expect(sandboxReply.safeParse(reply.json).error).toBeUndefined();
    const { containerId, status, createdAt, expiresAt, image, limits } = reply.json;
    expect(status).toBe("created");
    expect(containerId).toMatch(/^[a-z0-9]+$/);
    expect(createdAt).toMatch(ISO);
    expect(Date.parse(expiresAt) - Date.parse(createdAt)).toBeGreaterThanOrEqual(30_000);
    expect(image).toMatch(/^python:/);
    expect(limits).toMatchObject({ memoryBytes: 256 * 1024 * 1024, cpus: 0.5 });
  });

  test("a sandbox needs no body at all, and then has every default", async () => {
    await using bed = await ApiBed.open();
    const reply = await bed.call("POST", "/api/sandbox");
    expect(reply.status).toBe(201);
    expect(reply.json).toMatchObject({ profile: "server", network: "none", workdir: "/home/sandbox" });
    expect(reply.json.limits).toMatchObject({ diskBytes: 10 * 1024 ** 3, outputBytes: 1024 ** 3 });
    expect(Date.parse(reply.json.expiresAt) - Date.parse(reply.json.createdAt)).toBeGreaterThanOrEqual(
      30 * 60_000,
    );
  });

  test("S3-12 S3-13 S3-14 the variables of former servers say what a sandbox has that asks for nothing", async () => {
    const env = { DEFAULT_TIMEOUT: "120000", DEFAULT_MEMORY_LIMIT: "256m", DEFAULT_CPU_LIMIT: "0.25" };
    await using bed = await ApiBed.open({ env });
    const { json } = await bed.post("/api/sandbox", {});
    expect(json.limits).toMatchObject({ memoryBytes: 256 * 1024 ** 2, cpus: 0.25 });
    const lives = Date.parse(json.expiresAt) - Date.parse(json.createdAt);
    expect(lives).toBeGreaterThanOrEqual(120_000);
    expect(lives).toBeLessThan(30 * 60_000);
    const asked = await bed.post("/api/sandbox", { options: { memoryLimit: "64m", cpuLimit: "1" } });
    expect(asked.json.limits).toMatchObject({ memoryBytes: 64 * 1024 ** 2, cpus: 1 });
  });

  test.each([
    ["an alias", "@ai-sandbox/node", /^node:/],
    ["an alias with a tag", "@ai-sandbox/javascript:18", /^node:/],
    ["a short name", "python", /^python:/],
    ["an image", "node:18-alpine", /^node:18-alpine$/],
  ])("S3-11 S3-91 %s becomes an image", async (_, image, resolved) => {
    await using bed = await ApiBed.open();
    const reply = await bed.post("/api/sandbox", { image });
    expect(reply.json.image).toMatch(resolved);
  });

  test("S3-50 S3-53 S3-57 an image that is nowhere is an error with its cause", async () => {
    await using bed = await ApiBed.open({ images: ["here:1"] });
    for (const image of ["not/here:1", "@ai-sandbox/cobol"]) {
      const reply = await bed.post("/api/sandbox", { image });
      expect(reply.status).toBe(404);
      expect(reply.json.error).toMatchObject({
        code: "IMAGE_NOT_FOUND",
        message: expect.stringContaining(image),
      });
      expect(reply.json.error.details.cause).toContain(image);
    }
    expect((await bed.get("/api/sandbox")).json.sandboxes).toEqual([]);
  });

  test.each<[string, unknown, string]>([
    ["a timeout under a second", { options: { timeout: 999 } }, "VALIDATION_ERROR"],
    ["a timeout that is text", { options: { timeout: "30000" } }, "VALIDATION_ERROR"],
    ["a timeout of months", { options: { timeout: 2_592_000_001 } }, "VALIDATION_ERROR"],
    ["memory in another unit", { options: { memoryLimit: "1t" } }, "INVALID_MEMORY_LIMIT"],
    ["memory below what a sandbox needs", { options: { memoryLimit: "1m" } }, "INVALID_MEMORY_LIMIT"],
    [
      "memory beyond all numbers",
      { options: { memoryLimit: "99999999999999999999g" } },
      "INVALID_MEMORY_LIMIT",
    ],
    ["no processor", { options: { cpuLimit: "0" } }, "INVALID_CPU_LIMIT"],
    ["a negative processor", { options: { cpuLimit: "-1" } }, "INVALID_CPU_LIMIT"],
    ["a processor in words", { options: { cpuLimit: "half" } }, "INVALID_CPU_LIMIT"],
    ["an option that does not exist", { options: { speed: 1 } }, "VALIDATION_ERROR"],
    ["a field that does not exist", { imgae: "python" }, "VALIDATION_ERROR"],
    ["a relative working directory", { workdir: "work" }, "VALIDATION_ERROR"],
    ["a bad variable", { env: { "A B": "1" } }, "VALIDATION_ERROR"],
    ["a list", [], "VALIDATION_ERROR"],
    ["nothing", null, "VALIDATION_ERROR"],
  ])("S3-42 %s is refused before anything is made", async (_, body, code) => {
    await using bed = await ApiBed.open();
    const reply = await bed.post("/api/sandbox", body);
    expect(reply.status).toBe(400);
    expect(reply.json.error).toMatchObject({ code, requestId: reply.headers.get("aido-request-id") });
    expect(await bed.driver.list()).toEqual([]);
  });

  test("the bounds themselves are allowed", () => {
    const good = { options: { timeout: 1000, memoryLimit: "6291456", cpuLimit: "0.01" } };
    expect(createSandboxBody.safeParse(good).error).toBeUndefined();
    expect(
      createSandboxBody.safeParse({ options: { timeout: 2_592_000_000, memoryLimit: "1G" } }).success,
    ).toBe(true);
  });

  test("S3-42 S3-49 a body that is not JSON is told apart from one that is wrong", async () => {
    await using bed = await ApiBed.open();
    const reply = await bed.call("POST", "/api/sandbox", { raw: "{" });
    expect(reply.status).toBe(400);
    expect(reply.json.error).toMatchObject({ code: "VALIDATION_ERROR", message: "The body is not JSON" });
    expect(reply.json.error.details.cause).toEqual(expect.any(String));
  });

  test("S3-22 a running sandbox tells its state and use", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    const reply = await bed.get(`/api/sandbox/${id}`);
    expect(reply.json).toMatchObject({ containerId: id, status: "running" });
    expect(reply.json.resourceUsage).toEqual({
      cpuUsage: expect.stringMatching(/^\d+\.\d\d$/),
      memoryUsage: expect.stringMatching(/^\d+m$/),
    });
    expect(sandboxReply.safeParse(reply.json).error).toBeUndefined();
  });

  test("S3-21 a deleted sandbox is gone, and deleting it again says so", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    expect((await bed.call("DELETE", `/api/sandbox/${id}`)).json).toEqual({
      status: "deleted",
      containerId: id,
    });
    expect(await bed.driver.list()).toEqual([]);
    for (const method of ["GET", "DELETE"]) {
      const reply = await bed.call(method, `/api/sandbox/${id}`);
      expect(reply.status).toBe(404);
      expect(reply.json.error.code).toBe("CONTAINER_NOT_FOUND");
    }
  });

  test("a sandbox is stopped, refuses commands, and is started again with its files", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    await bed.exec(id, ["put", "kept", "here"]);
    expect((await bed.post(`/api/sandbox/${id}/stop`, { graceMs: 0 })).json.status).toBe("stopped");
    const refused = await bed.exec(id, ["true"]);
    expect(refused.status).toBe(409);
    expect(refused.json.error.code).toBe("CONTAINER_NOT_RUNNING");
    expect((await bed.get(`/api/sandbox/${id}`)).json).toMatchObject({ status: "stopped" });
    expect((await bed.get(`/api/sandbox/${id}`)).json.resourceUsage).toBeUndefined();
    expect((await bed.call("POST", `/api/sandbox/${id}/start`)).json.status).toBe("running");
    expect((await bed.exec(id, ["cat", "kept"])).json.stdout).toBe("here\n");
    await bed.post(`/api/sandbox/${id}/stop`, {});
    expect((await bed.call("POST", `/api/sandbox/${id}/resume`)).json.status).toBe("running");
  });

  test("a sandbox's end is moved, and taken away", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    const moved = await bed.post(`/api/sandbox/${id}/timeout`, { timeout: 3_600_000 });
    expect(Date.parse(moved.json.expiresAt)).toBeGreaterThan(Date.now() + 3_500_000);
    expect((await bed.post(`/api/sandbox/${id}/timeout`, { timeout: 0 })).json.expiresAt).toBeNull();
    expect((await bed.post(`/api/sandbox/${id}/timeout`, { timeout: 1 })).status).toBe(400);
  });

  test("S3-30 S3-60 S3-71 use is read once, or every second as events", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    const now = await bed.get(`/api/sandbox/${id}/stats`);
    expect(now.json).toMatchObject({ cpuMs: expect.any(Number), at: expect.stringMatching(ISO) });
    const stream = await bed.fetch("GET", `/api/sandbox/${id}/stats?stream`);
    expect(stream.headers.get("content-type")).toBe("text/event-stream");
    await bed.call("DELETE", `/api/sandbox/${id}`);
    const events = await stream.text();
    expect(events).toContain("event: stats\n");
    expect(events).toContain("event: end\n");
    expect((await bed.get(`/api/sandbox/${id}/stats`)).status).toBe(404);
  });

  test("sandboxes are listed newest first, in pages, by label and state", async () => {
    await using bed = await ApiBed.open();
    const ids: string[] = [];
    for (const colour of ["red", "blue", "red"])
      ids.unshift(await bed.sandbox(undefined, { labels: { colour } }));
    const seen: string[] = [];
    let next: string | null = null;
    do {
      const page: string = next === null ? "" : `&before=${next}`;
      const { json } = await bed.get(`/api/sandbox?limit=2${page}`);
      seen.push(...json.sandboxes.map((sandbox: { id: string }) => sandbox.id));
      next = json.next;
    } while (next !== null);
    expect(seen).toEqual(ids);
    const red = await bed.get("/api/sandbox?label=colour=red");
    expect(red.json.sandboxes).toHaveLength(2);
    await bed.post(`/api/sandbox/${ids[0]}/stop`, {});
    expect((await bed.get("/api/sandbox?state=stopped")).json.sandboxes).toMatchObject([{ id: ids[0] }]);
    expect((await bed.get("/api/sandbox?state=asleep")).status).toBe(400);
    expect((await bed.get("/api/sandbox?label=colour")).status).toBe(400);
    expect((await bed.get("/api/sandbox?limit=0")).status).toBe(400);
  });

  test("labels of aido itself can be neither set nor seen", async () => {
    await using bed = await ApiBed.open();
    const reply = await bed.post("/api/sandbox", { labels: { "dev.aido.owner": "key:other" } });
    expect(reply.status).toBe(400);
    const id = await bed.sandbox(undefined, { labels: { team: "a" } });
    expect((await bed.get(`/api/sandbox/${id}`)).json.labels).toEqual({ team: "a" });
  });

  test("S3-31 S3-48 a sandbox whose time is over is gone, and its commands are told so", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox(undefined, { options: { timeout: 1000 } });
    await expect
      .poll(() => bed.aido.sandboxes.expire().then(() => bed.driver.list()), { timeout: 10_000 })
      .toEqual([]);
    for (const reply of [await bed.get(`/api/sandbox/${id}`), await bed.exec(id, ["true"])]) {
      expect(reply.status).toBe(410);
      expect(reply.json.error.code).toBe("CONTAINER_EXPIRED");
    }
  });
});
