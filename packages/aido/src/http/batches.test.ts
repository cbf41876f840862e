import { describe, expect, test } from "vitest";
import { ApiBed, type ApiBedOptions } from "../../test/server/api-bed.ts";
import { FAKE_SHELL } from "../../test/server/fake-shell.ts";

const open = (options: ApiBedOptions = {}) => ApiBed.open({ programs: FAKE_SHELL, ...options });

async function made(bed: ApiBed, count: number, key?: string) {
  const { json } = await bed.post("/api/jobs/20", { count }, { key });
  const urls: string[] = json.sandboxes.map(({ sidecarUrl }: { sidecarUrl: string }) => sidecarUrl);
  const tokens: string[] = json.sandboxes.map(({ token }: { token: string }) => token);
  return { batchId: json.batchId as string, urls, tokens, sandboxes: json.sandboxes };
}

describe("batches over HTTP", () => {
  test("S2-31 S2-34 S2-97 sandboxes are made by a template, each with a token of its own", async () => {
    await using bed = await open();
    const template_request = {
      name: "web",
      env_json: '{"A":"1"}',
      memory_mb: 64,
      metadata_json: '{"team":"x"}',
    };
    const { status, json } = await bed.post("/api/jobs/20", { count: 3, template_request });
    expect(status).toBe(200);
    expect(json.batchId).toMatch(/^batch-[0-9a-f-]{36}$/);
    expect(json.sandboxes).toHaveLength(3);
    for (const sandbox of json.sandboxes) {
      expect(sandbox).toEqual({
        sandboxId: expect.stringMatching(/^sandbox-/),
        sidecarUrl: expect.stringContaining(`/sidecar/${sandbox.sandboxId}`),
        token: expect.stringMatching(/^[0-9a-f]{64}$/),
        sshPort: null,
      });
    }
    expect(new Set(json.sandboxes.map(({ token }: { token: string }) => token)).size).toBe(3);
    const listed = await bed.aido.sandboxes.list({ labels: { team: "x", batch: json.batchId } });
    expect(listed.map(({ name }) => name).sort()).toEqual(["web-1", "web-2", "web-3"]);
  });

  test("S2-31 50 are made at once", async () => {
    await using bed = await open();
    expect((await made(bed, 50)).sandboxes).toHaveLength(50);
    expect(await bed.aido.sandboxes.list()).toHaveLength(50);
  });

  test.each([
    ["none", { count: 0 }, /1 to 50/],
    ["51", { count: 51 }, /1 to 50/],
    ["no count", {}, /1 to 50/],
    ["a token that all would share", { count: 2, template_request: { sidecar_token: "x" } }, /share a token/],
    ["an unknown field of the template", { count: 2, template_request: { imagee: "x" } }, /imagee/],
    ["a template that nothing can be made of", { count: 2, template_request: { stack: "cobol" } }, /cobol/],
    ["an unknown distribution", { count: 2, distribution: "random" }, /distribution/],
    ["an operator that is none", { count: 2, operators: ["me"] }, /operators/],
  ])("S2-31 S2-97 %s: refused, and nothing is made", async (_, body, message) => {
    await using bed = await open();
    const reply = await bed.post("/api/jobs/20", body);
    expect(reply.status).toBe(400);
    expect(reply.json.error).toMatchObject({
      code: "VALIDATION_ERROR",
      message: expect.stringMatching(message),
    });
    expect(await bed.aido.sandboxes.list()).toEqual([]);
    expect(await bed.aido.batches.list()).toEqual([]);
  });

  test("S2-97 operators and distribution are taken; one machine alone makes them all", async () => {
    await using bed = await open();
    const operators = [`0x${"1".repeat(40)}`, `0x${"2".repeat(40)}`];
    const { json } = await bed.post("/api/jobs/20", { count: 2, operators, distribution: "round_robin" });
    expect(json.sandboxes).toHaveLength(2);
  });

  test("S2-31 one that cannot be made leaves the others alone", async () => {
    await using bed = await open({ guarded: true, maxSandboxes: 2 });
    const key = await bed.key("small");
    const { json } = await bed.post("/api/jobs/20", { count: 3 }, { key });
    const failed = json.sandboxes.filter((item: object) => "error" in item);
    expect(failed).toEqual([{ error: expect.objectContaining({ code: "QUOTA_EXCEEDED" }) }]);
  });

  test("S2-32 S2-36 S2-99 a command runs in many, in the order of the request, failures apart", async () => {
    await using bed = await open();
    const { urls, tokens, sandboxes } = await made(bed, 3);
    await bed.aido.sandboxes.stop(sandboxes[1].sandboxId);
    for (const parallel of [false, true]) {
      const body = {
        sidecar_urls: urls,
        sidecar_tokens: tokens,
        command: "echo $X; exit 4",
        env_json: '{"X":"y"}',
        parallel,
      };
      const { json } = await bed.post("/api/jobs/22", body);
      expect(json).toEqual({
        batchId: expect.stringMatching(/^batch-/),
        execResults: [
          { sidecarUrl: urls[0], exitCode: 4, stdout: "y\n", stderr: "" },
          { sidecarUrl: urls[1], error: expect.objectContaining({ code: "CONTAINER_NOT_RUNNING" }) },
          { sidecarUrl: urls[2], exitCode: 4, stdout: "y\n", stderr: "" },
        ],
      });
    }
  });

  test("S2-32 S2-72 S2-99 unequal lists and wrong tokens are refused before anything runs", async () => {
    await using bed = await open({ guarded: true });
    const key = await bed.key("user");
    const { urls, tokens, sandboxes } = await made(bed, 2, key);
    const run = (body: object) => bed.post("/api/jobs/22", { command: "put ran", ...body }, { key });
    const refused = [
      await run({ sidecar_urls: urls, sidecar_tokens: tokens.slice(1) }),
      await run({ sidecar_urls: urls, sidecar_tokens: [...tokens, "x"] }),
      await run({ sidecar_urls: urls }),
      await run({ sidecar_urls: [], sidecar_tokens: [] }),
      await run({ sidecar_urls: urls, sidecar_tokens: tokens, command: " " }),
    ];
    for (const reply of refused) expect(reply.json.error.code).toBe("VALIDATION_ERROR");
    const wrong = await run({ sidecar_urls: urls, sidecar_tokens: [tokens[0], tokens[0]] });
    expect(wrong).toMatchObject({ status: 403, json: { error: { message: "Unauthorized sidecar_token" } } });
    for (const { sandboxId } of sandboxes) expect(await bed.aido.execs.list(sandboxId)).toEqual([]);
    const operator = await bed.key("operator", { scopes: ["read", "write", "admin"] });
    const without = await bed.post(
      "/api/jobs/22",
      { sidecar_urls: urls, command: "true" },
      { key: operator },
    );
    expect(without.json.execResults).toHaveLength(2);
  });

  test("S2-33 S2-37 S2-100 results are collected once, without the tokens; an unknown batch is not found", async () => {
    await using bed = await open();
    const { batchId, sandboxes } = await made(bed, 2);
    const collected = await bed.post("/api/jobs/23", { batch_id: batchId });
    const kept = sandboxes.map((sandbox: object) => ({ ...sandbox, token: "" }));
    expect(collected.json).toEqual({ batchId, kind: "create", results: kept });
    for (const id of [batchId, "batch-none"]) {
      const reply = await bed.post("/api/jobs/23", { batch_id: id });
      expect(reply).toMatchObject({
        status: 404,
        json: { error: { message: expect.stringContaining("Batch not found") } },
      });
    }
  });

  test("S2-33 a batch is seen by its owner and by administrators only", async () => {
    await using bed = await open({ guarded: true });
    const key = await bed.key("one");
    const other = await bed.key("two");
    const { batchId } = await made(bed, 1, key);
    expect((await bed.get("/api/batches", { key })).json.batches).toMatchObject([
      { id: batchId, kind: "create", state: "done", count: 1, ended: 1, failed: 0 },
    ]);
    expect((await bed.get(`/api/batches/${batchId}`, { key })).json).toMatchObject({ id: batchId });
    expect((await bed.get("/api/batches", { key: other })).json.batches).toEqual([]);
    for (const method of ["GET", "DELETE"]) {
      expect((await bed.call(method, `/api/batches/${batchId}`, { key: other })).status).toBe(404);
    }
    expect((await bed.post("/api/jobs/23", { batchId }, { key: other })).status).toBe(404);
  });

  test("S2-33 a batch with a chosen id is run once, through the client too", async () => {
    await using bed = await open();
    const client = bed.client();
    const request = { count: 1, batchId: "batch-mine" };
    const first = await client.jobs.run("BATCH_CREATE", request);
    const second = await client.jobs.run("BATCH_CREATE", request);
    expect(second.sandboxes).toEqual([{ ...first.sandboxes[0], token: "" }]);
    expect(await bed.aido.sandboxes.list()).toHaveLength(1);
    expect(await client.batches.get("batch-mine")).toMatchObject({ ended: 1, createdAt: expect.any(Date) });
    expect(await client.batches.list()).toHaveLength(1);
    expect(await client.batches.cancel("batch-mine")).toMatchObject({ state: "done" });
  });

  test("S2-33 a batch goes on when its caller leaves, and can be cancelled", async () => {
    await using bed = await open();
    const { urls } = await made(bed, 1);
    const leave = new AbortController();
    const body = { sidecarUrls: urls, command: "sleep 1000", batchId: "b1" };
    const asked = bed.post("/api/jobs/22", body, { signal: leave.signal });
    await expect.poll(async () => (await bed.get("/api/batches/b1")).status).toBe(200);
    leave.abort();
    await asked.catch(() => undefined);
    expect((await bed.get("/api/batches/b1")).json).toMatchObject({ state: "running", ended: 0 });
    const cancelled = await bed.call("DELETE", "/api/batches/b1");
    expect(cancelled.json).toMatchObject({ state: "cancelled", ended: 1, failed: 1 });
  });
});

describe("numbers of jobs and sandboxes", () => {
  test("S2-78 S2-79 S2-80 S2-81 S2-82 are there by their names, as JSON and for Prometheus", async () => {
    await using bed = await open();
    const { sandboxes, urls } = await made(bed, 2);
    await bed.post("/api/jobs/1", { sandboxId: sandboxes[0].sandboxId });
    await bed.post("/api/jobs/10", { sidecarUrl: "nobody", command: "ls" });
    const running = bed.post("/api/jobs/10", { sidecarUrl: urls[1], command: "sleep 1000" });
    const read = async () => (await bed.get("/api/metrics")).json;
    await expect.poll(async () => (await read()).active_sessions).toBe(1);
    expect(await read()).toEqual({
      total_jobs: 3,
      total_duration_ms: expect.any(Number),
      failed_jobs: 1,
      total_input_tokens: 0,
      total_output_tokens: 0,
      active_sandboxes: 1,
      peak_sandboxes: 2,
      allocated_cpu_cores: 1,
      allocated_memory_mb: 2048,
      active_sessions: 1,
      reaped_idle: 0,
      reaped_lifetime: 0,
      garbage_collected: 0,
      snapshots_committed: 1,
      snapshots_uploaded: 0,
      gc_containers_removed: 0,
      gc_images_removed: 0,
      gc_s3_cleaned: 0,
    });
    expect(await bed.client().metrics()).toMatchObject({ total_jobs: 3, active_sessions: 1 });
    await bed.post("/api/jobs/3", { sandboxId: sandboxes[1].sandboxId });
    await running;
    await expect.poll(async () => (await read()).active_sessions).toBe(0);
    const { text } = await bed.get("/metrics");
    expect(text).toMatch(/^# TYPE total_jobs counter\ntotal_jobs \d+$/m);
    expect(text).toMatch(/^# TYPE active_sandboxes gauge\nactive_sandboxes 0$/m);
    expect(text).toMatch(/^peak_sandboxes 2$/m);
  });
});
