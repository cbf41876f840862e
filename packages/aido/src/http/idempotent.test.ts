import { describe, expect, test } from "vitest";
import { ApiBed } from "../../test/server/api-bed.ts";

const CREATE = "/api/sandbox";

describe("idempotency keys", () => {
  test("the same request twice makes one sandbox and gives the same answer", async () => {
    await using bed = await ApiBed.open();
    const headers = { "idempotency-key": "k1" };
    const first = await bed.post(CREATE, { image: "python" }, { headers });
    const second = await bed.post(CREATE, { image: "python" }, { headers });
    expect(second.status).toBe(201);
    expect(second.json).toEqual(first.json);
    expect(first.headers.get("idempotency-replayed")).toBeNull();
    expect(second.headers.get("idempotency-replayed")).toBe("true");
    expect(await bed.driver.list()).toHaveLength(1);
  });

  test("another request with the same key is refused", async () => {
    await using bed = await ApiBed.open();
    const headers = { "idempotency-key": "k1" };
    await bed.post(CREATE, { image: "python" }, { headers });
    const other = await bed.post(CREATE, { image: "node" }, { headers });
    expect(other.status).toBe(409);
    expect(other.json.error.code).toBe("EXECUTION_CONFLICT");
  });

  test("of requests that come at once one does the work and the others may come again", async () => {
    await using bed = await ApiBed.open();
    const headers = { "idempotency-key": "k1" };
    const replies = await Promise.all(Array.from({ length: 5 }, () => bed.post(CREATE, {}, { headers })));
    const made = replies.filter(({ status }) => status === 201);
    expect(made.length).toBeGreaterThanOrEqual(1);
    for (const reply of replies.filter(({ status }) => status !== 201)) {
      expect(reply.status).toBe(409);
      expect(reply.json.error.code).toBe("CONTAINER_BUSY");
      expect(reply.headers.get("retry-after")).toBe("1");
    }
    expect(await bed.driver.list()).toHaveLength(1);
    expect((await bed.post(CREATE, {}, { headers })).json).toEqual(made[0]?.json);
  });

  test("a failure frees the key", async () => {
    await using bed = await ApiBed.open();
    const headers = { "idempotency-key": "k1" };
    bed.driver.failNext("create", new Error("the engine stumbled"));
    expect((await bed.post(CREATE, {}, { headers })).status).toBe(500);
    expect((await bed.post(CREATE, {}, { headers })).status).toBe(201);
  });

  test("a key belongs to its owner", async () => {
    await using bed = await ApiBed.open({ guarded: true });
    const headers = { "idempotency-key": "k1" };
    const replies = [
      await bed.post(CREATE, {}, { headers, key: await bed.key("a") }),
      await bed.post(CREATE, {}, { headers, key: await bed.key("b") }),
    ];
    expect(new Set(replies.map(({ json }) => json.containerId)).size).toBe(2);
  });

  test("a key of a server that died at work is free again after a while", async () => {
    await using bed = await ApiBed.open();
    const long = new Date(Date.now() - 16 * 60_000);
    await bed.store.idempotency.begin("anonymous", "k1", "whatever", long);
    expect((await bed.post(CREATE, {}, { headers: { "idempotency-key": "k1" } })).status).toBe(201);
  });

  test.each(["", "with space", "x".repeat(129), "ümlaut"])("%j is no key", async (key) => {
    await using bed = await ApiBed.open();
    const headers = { "idempotency-key": encodeURI(key) === key ? key : "a b" };
    expect((await bed.post(CREATE, {}, { headers })).status).toBe(400);
  });
});
