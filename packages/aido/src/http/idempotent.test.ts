import { describe, expect, test } from "vitest";
import { ApiBed } from "../../test/server/api-bed.ts";
import { gate } from "../../test/server/gate.ts";

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
    const left = { owner: "anonymous", key: "k1", fingerprint: "whatever", holder: "elsewhere", at: long };
    await bed.store.idempotency.begin(left);
    expect((await bed.post(CREATE, {}, { headers: { "idempotency-key": "k1" } })).status).toBe(201);
  });

  test("a key of a server that was killed at work is free at once, and one request gets it", async () => {
    await using bed = await ApiBed.open();
    const at = new Date(Date.now() - 1000);
    const left = { owner: "anonymous", key: "k1", fingerprint: "whatever", holder: bed.deadHolder(), at };
    await bed.store.idempotency.begin(left);
    const headers = { "idempotency-key": "k1" };
    const replies = await Promise.all(Array.from({ length: 5 }, () => bed.post(CREATE, {}, { headers })));
    expect(replies.filter(({ status }) => status === 201).length).toBeGreaterThanOrEqual(1);
    expect(await bed.driver.list()).toHaveLength(1);
  });

  test("what a server made that was killed before it answered is the answer, with a token of its own", async () => {
    await using bed = await ApiBed.open();
    const headers = { "idempotency-key": "k1" };
    const body = { profile: "sidecar" };
    const first = await bed.post(CREATE, body, { headers });
    // As it was before the answer was kept.
    const asked = { owner: "anonymous", key: "k1", holder: bed.deadHolder() };
    const known = await bed.store.idempotency.begin({ ...asked, fingerprint: "", at: new Date() });
    await bed.store.idempotency.prune(new Date(Date.now() + 60_000));
    const { fingerprint = "", at = new Date() } = known ?? {};
    await bed.store.idempotency.begin({ ...asked, fingerprint, at });
    const again = await bed.post(CREATE, body, { headers });
    expect(again).toMatchObject({ status: 201, json: { containerId: first.json.containerId, labels: {} } });
    expect(again.json.token).not.toBe(first.json.token);
    const health = await bed.get(`/sidecar/${first.json.containerId}/terminals`, { key: again.json.token });
    expect(health.status).toBe(200);
    expect(await bed.driver.list()).toHaveLength(1);
  });

  test("a key of a server that is at work elsewhere is not free", async () => {
    await using bed = await ApiBed.open();
    const left = {
      owner: "anonymous",
      key: "k1",
      fingerprint: "whatever",
      holder: "elsewhere",
      at: new Date(),
    };
    await bed.store.idempotency.begin(left);
    expect((await bed.post(CREATE, {}, { headers: { "idempotency-key": "k1" } })).status).toBe(409);
    expect(await bed.driver.list()).toHaveLength(0);
  });

  describe("of commands", () => {
    const EXEC = "/api/sandbox/exec";
    const headers = { "idempotency-key": "k1" };

    test("the same request runs once, also when it comes many times at once", async () => {
      let runs = 0;
      const { released, release } = gate();
      await using bed = await ApiBed.open({
        programs: {
          slow: async (process) => {
            runs += 1;
            await released;
            for await (const chunk of process.stdin) await process.stdout(chunk);
            return 0;
          },
        },
      });
      const body = { containerId: await bed.sandbox(), command: ["slow"], stdin: "input" };
      const all = Promise.all([1, 2, 3].map(() => bed.post(EXEC, body, { headers })));
      await expect.poll(() => runs).toBe(1);
      release();
      const late = await bed.post(EXEC, body, { headers });
      const replies = [...(await all), late];
      for (const reply of replies) {
        expect(reply.status).toBe(200);
        expect(reply.json).toMatchObject({ stdout: "input", id: late.json.id });
      }
      expect(runs).toBe(1);
      const replayed = replies.filter((reply) => reply.headers.get("idempotency-replayed") === "true");
      expect(replayed).toHaveLength(3);
    });

    test("a client that left before the answer may come again", async () => {
      const client = new AbortController();
      let runs = 0;
      await using bed = await ApiBed.open({
        programs: {
          slow: () => {
            runs += 1;
            client.abort();
            return 3;
          },
        },
      });
      const body = { containerId: await bed.sandbox(), command: ["slow"] };
      await bed.post(EXEC, body, { headers, signal: client.signal });
      expect((await bed.post(EXEC, body, { headers })).json.exitCode).toBe(3);
      expect(runs).toBe(1);
    });

    test("another body, sandbox or operation with the same key is refused", async () => {
      await using bed = await ApiBed.open();
      const body = { containerId: await bed.sandbox(), command: ["true"] };
      expect((await bed.post(EXEC, body, { headers })).status).toBe(200);
      const others: [string, object][] = [
        [EXEC, { ...body, command: ["false"] }],
        [EXEC, { ...body, env: { A: "1" } }],
        [EXEC, { ...body, containerId: await bed.sandbox() }],
        [CREATE, {}],
      ];
      for (const [path, other] of others) {
        const reply = await bed.post(path, other, { headers });
        expect(reply.json.error.code).toBe("EXECUTION_CONFLICT");
      }
      expect((await bed.post(EXEC, body, { headers: { "idempotency-key": "a b" } })).status).toBe(400);
    });

    test("keys of two owners are two commands", async () => {
      await using bed = await ApiBed.open({ guarded: true });
      const mine = await bed.key("a");
      const admin = await bed.key("b", { scopes: ["admin"] });
      const body = { containerId: await bed.sandbox(mine), command: ["true"] };
      const replies = [
        await bed.post(EXEC, body, { headers, key: mine }),
        await bed.post(EXEC, body, { headers, key: admin }),
      ];
      expect(new Set(replies.map(({ json }) => json.id)).size).toBe(2);
    });
  });

  test.each(["", "with space", "x".repeat(129), "ümlaut"])("%j is no key", async (key) => {
    await using bed = await ApiBed.open();
    const headers = { "idempotency-key": encodeURI(key) === key ? key : "a b" };
    expect((await bed.post(CREATE, {}, { headers })).status).toBe(400);
  });
});
