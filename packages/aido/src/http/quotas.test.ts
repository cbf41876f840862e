import { describe, expect, test } from "vitest";
import { ApiBed } from "../../test/server/api-bed.ts";

const MIB = 1024 ** 2;

describe("quotas of an owner", () => {
  test("S3-39 processors are bounded over all that run, also when they are asked for at once", async () => {
    await using bed = await ApiBed.open({ guarded: true, settings: { "serve.maxCpus": "1.5" } });
    const [mine, other] = [await bed.key("me"), await bed.key("them")];
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => bed.post("/api/sandbox", {}, { key: mine })),
    );
    const made = replies.filter(({ status }) => status === 201);
    expect(made).toHaveLength(3);
    const refused = replies.find(({ status }) => status === 429);
    expect(refused?.json.error).toMatchObject({
      code: "QUOTA_EXCEEDED",
      message: "Your quota of 1.5 processors is not enough: 1.5 in use, 0.5 asked for",
      details: { quota: "cpus", limit: 1.5, used: 1.5, asked: 0.5 },
    });
    expect(Number(refused?.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await bed.post("/api/sandbox", {}, { key: other })).status).toBe(201);
    await bed.post(`/api/sandbox/${made[0]?.json.containerId}/stop`, {}, { key: mine });
    const large = await bed.post("/api/sandbox", { limits: { cpus: 0.6 } }, { key: mine });
    expect(large.json.error.details).toMatchObject({ used: 1, asked: 0.6 });
    expect((await bed.post("/api/sandbox", { limits: { cpus: 0.1 } }, { key: mine })).status).toBe(201);
    expect((await bed.post("/api/sandbox", { limits: { cpus: 0.4 } }, { key: mine })).status).toBe(201);
  });

  test("S3-39 memory counts again when a stopped sandbox is started, by whatever", async () => {
    await using bed = await ApiBed.open({ guarded: true, settings: { "serve.maxMemory": "1g" } });
    const key = await bed.key("me");
    const body = { limits: { memoryBytes: 600 * MIB }, autoResume: true };
    const one = await bed.sandbox(key, body);
    const refused = await bed.post("/api/sandbox", body, { key });
    expect(refused.json.error).toMatchObject({
      message: "Your quota of 1024 MiB of memory is not enough: 600 MiB in use, 600 MiB asked for",
      details: { quota: "memoryBytes", limit: 1024 * MIB, used: 600 * MIB, asked: 600 * MIB },
    });
    await bed.post(`/api/sandbox/${one}/stop`, {}, { key });
    const two = await bed.sandbox(key, body);
    for (const verb of ["start", "resume"]) {
      expect((await bed.post(`/api/sandbox/${one}/${verb}`, {}, { key })).status).toBe(429);
    }
    expect((await bed.exec(one, ["true"], {}, key)).json.error.code).toBe("QUOTA_EXCEEDED");
    expect((await bed.get(`/api/sandbox/${one}`, { key })).json.state).toBe("stopped");
    await bed.call("DELETE", `/api/sandbox/${two}`, { key });
    const both = [`/api/sandbox/${one}/start`, `/api/sandbox/${one}/start`];
    const started = await Promise.all(both.map((path) => bed.post(path, {}, { key })));
    expect(started.map(({ status }) => status)).toEqual([200, 200]);
  });

  test("stopped sandboxes that are started at once get no more than there is", async () => {
    await using bed = await ApiBed.open({ guarded: true, settings: { "serve.maxCpus": "1" } });
    const key = await bed.key("me");
    const ids: string[] = [];
    for (let at = 0; at < 4; at += 1) {
      const id = await bed.sandbox(key);
      await bed.post(`/api/sandbox/${id}/stop`, {}, { key });
      ids.push(id);
    }
    const started = await Promise.all(ids.map((id) => bed.post(`/api/sandbox/${id}/start`, {}, { key })));
    expect(started.map(({ status }) => status).sort()).toEqual([200, 200, 429, 429]);
  });

  test("a key's own limits come before the server's, also 0 for none", async () => {
    await using bed = await ApiBed.open({
      guarded: true,
      rateLimit: 100,
      settings: { "serve.maxSandboxes": "2", "serve.maxCpus": "1" },
    });
    const small = await bed.key("small", { limits: { maxSandboxes: 1, rateLimit: 7 } });
    const large = await bed.key("large", { limits: { maxSandboxes: 0, maxCpus: 2, rateLimit: 0 } });
    const first = await bed.post("/api/sandbox", {}, { key: small });
    expect([first.status, first.headers.get("ratelimit-limit")]).toEqual([201, "7"]);
    const second = await bed.post("/api/sandbox", {}, { key: small });
    expect(second.json.error.details).toMatchObject({ quota: "sandboxes", limit: 1, used: 1, asked: 1 });
    for (let at = 0; at < 4; at += 1) await bed.sandbox(large);
    const fifth = await bed.post("/api/sandbox", {}, { key: large });
    expect(fifth.json.error.details).toMatchObject({ quota: "cpus", limit: 2 });
    expect(fifth.headers.get("ratelimit-limit")).toBeNull();
  });

  test("whoever uses aido on the machine itself has none, and counts for nobody", async () => {
    await using bed = await ApiBed.open({ maxSandboxes: 1 });
    await bed.aido.sandboxes.create({});
    await bed.aido.sandboxes.create({});
    expect((await bed.post("/api/sandbox", {})).status).toBe(201);
    expect((await bed.post("/api/sandbox", {})).status).toBe(429);
  });

  test("one that has ended unseen takes no room", async () => {
    await using bed = await ApiBed.open({ guarded: true, settings: { "serve.maxCpus": "0.5" } });
    const key = await bed.key("me");
    await bed.driver.remove(await bed.sandbox(key));
    expect((await bed.post("/api/sandbox", {}, { key })).status).toBe(201);
  });
});
