import { describe, expect, test } from "vitest";
import { ApiBed } from "../../test/server/api-bed.ts";
import { TokenBuckets } from "./rate-limiter.ts";

describe("limits of the API", () => {
  test("S3-41 S3-49 a caller that asks too often is told when to come again; others are not affected", async () => {
    await using bed = await ApiBed.open({ guarded: true, rateLimit: 3 });
    const [mine, other] = [await bed.key("me"), await bed.key("them")];
    const left: (string | null)[] = [];
    for (let at = 0; at < 3; at += 1) {
      const reply = await bed.get("/api/sandbox/nope/files?path=x", { key: mine });
      expect(reply.headers.get("ratelimit-limit")).toBe("3");
      left.push(reply.headers.get("ratelimit-remaining"));
    }
    expect(left).toEqual(["2", "1", "0"]);
    const refused = await bed.get("/api/sandbox", { key: mine });
    expect(refused.status).toBe(429);
    expect(refused.json.error).toMatchObject({ code: "RATE_LIMITED", details: { limit: 3 } });
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(refused.headers.get("ratelimit-limit")).toBe("3");
    expect(refused.headers.get("ratelimit-remaining")).toBe("0");
    expect(Number(refused.headers.get("ratelimit-reset"))).toBeGreaterThan(0);
    expect((await bed.get("/api/sandbox", { key: other })).status).toBe(200);
    expect((await bed.get("/health")).status).toBe(200);
  });

  test("a bucket fills evenly", () => {
    let now = 0;
    const buckets = new TokenBuckets(60, () => now);
    for (let at = 0; at < 60; at += 1) expect(buckets.take("a").refusal).toBeUndefined();
    expect(buckets.take("a").refusal).toMatchObject({ code: "RATE_LIMITED" });
    now = 1000;
    expect(buckets.take("a")).toMatchObject({
      headers: { "ratelimit-remaining": "0" },
      refusal: undefined,
    });
    expect(buckets.take("a").refusal).toMatchObject({ details: { retryAfterSeconds: 1 } });
    now = 10_000_000;
    expect(buckets.take("a").headers["ratelimit-remaining"]).toBe("59");
  });

  test("S3-39 S3-78 an owner has at most so many sandboxes, also when it asks for all at once", async () => {
    await using bed = await ApiBed.open({ guarded: true, maxSandboxes: 3 });
    const [mine, other] = [await bed.key("me"), await bed.key("them")];
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => bed.post("/api/sandbox", {}, { key: mine })),
    );
    const statuses = replies.map(({ status }) => status).sort();
    expect(statuses).toEqual([201, 201, 201, 429, 429, 429, 429, 429]);
    const refused = replies.find(({ status }) => status === 429);
    expect(refused?.json.error).toMatchObject({ code: "QUOTA_EXCEEDED", details: { limit: 3 } });
    expect((await bed.post("/api/sandbox", {}, { key: other })).status).toBe(201);
    const made = replies.find(({ status }) => status === 201)?.json.containerId;
    await bed.call("DELETE", `/api/sandbox/${made}`, { key: mine });
    expect((await bed.post("/api/sandbox", {}, { key: mine })).status).toBe(201);
  });

  test("a sandbox that could not be made counts for nothing", async () => {
    await using bed = await ApiBed.open({ guarded: true, maxSandboxes: 1, images: ["here:1"] });
    const key = await bed.key("me");
    expect((await bed.post("/api/sandbox", { image: "gone:1" }, { key })).status).toBe(404);
    expect((await bed.post("/api/sandbox", { image: "here:1" }, { key })).status).toBe(201);
  });

  test("a body beyond the limit is refused, said or unsaid", async () => {
    await using bed = await ApiBed.open({ maxBodyBytes: 1000 });
    const id = await bed.sandbox();
    const said = await bed.exec(id, ["true"], { files: { big: "x".repeat(2000) } });
    expect(said.status).toBe(413);
    expect(said.json.error).toMatchObject({
      code: "PAYLOAD_TOO_LARGE",
      hint: expect.stringContaining("files"),
    });
    let sent = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 1;
        controller.enqueue(new Uint8Array(500).fill(0x20));
      },
    });
    expect((await bed.call("POST", "/api/sandbox", { raw: endless })).status).toBe(413);
    expect(sent).toBeLessThan(10);
    // Files are streamed: the limit is not theirs.
    const put = await bed.call("PUT", `/api/sandbox/${id}/files?path=big`, { raw: "x".repeat(2000) });
    expect(put.status).toBe(200);
  });

  test("S3-54 paths and methods that do not exist are told apart", async () => {
    await using bed = await ApiBed.open();
    const nowhere = await bed.get("/api/nowhere");
    expect(nowhere.status).toBe(404);
    expect(nowhere.json.error).toMatchObject({ code: "RESOURCE_NOT_FOUND", requestId: expect.any(String) });
    const method = await bed.call("PUT", "/api/sandbox");
    expect(method.status).toBe(405);
    expect(method.headers.get("allow")).toBe("POST, GET");
    expect(method.json.error.code).toBe("METHOD_NOT_ALLOWED");
    expect((await bed.call("PATCH", "/api/sandbox/x/history")).status).toBe(405);
    expect((await bed.call("HEAD", "/health")).status).toBe(200);
    expect((await bed.get("/api/sandbox/")).status).toBe(200);
  });

  test("a server that shuts down refuses new work and says that it is not ready", async () => {
    await using bed = await ApiBed.open();
    bed.draining.abort();
    const reply = await bed.post("/api/sandbox", {});
    expect(reply.status).toBe(503);
    expect(reply.json.error.code).toBe("SHUTTING_DOWN");
    expect(reply.headers.get("retry-after")).toBe("1");
    expect((await bed.get("/health")).status).toBe(200);
    const ready = await bed.get("/ready");
    expect(ready.status).toBe(503);
    expect(ready.json).toEqual({ status: "unavailable", failing: ["shutting down"] });
  });
});
