import { describe, expect, test } from "vitest";
import { ApiBed } from "../../test/server/api-bed.ts";

describe("who may do what", () => {
  test("S3-44 a guarded server answers nobody without a key, and says how to send one", async () => {
    await using bed = await ApiBed.open({ guarded: true });
    const none = await bed.get("/api/sandbox");
    expect(none.status).toBe(401);
    expect(none.json.error).toMatchObject({ code: "MISSING_AUTH", hint: expect.stringContaining("Bearer") });
    expect(none.headers.get("www-authenticate")).toBe("Bearer");
    const basic = await bed.get("/api/sandbox", { headers: { authorization: "Basic eDp5" } });
    expect(basic.json.error.code).toBe("INVALID_AUTH_FORMAT");
    for (const path of ["/health", "/ready", "/openapi.json", "/docs"]) {
      expect((await bed.get(path)).status).toBe(200);
    }
    expect((await bed.get("/metrics")).status).toBe(401);
  });

  test("a key is good in either header; one letter off, it is not known", async () => {
    await using bed = await ApiBed.open({ guarded: true });
    const key = await bed.key("ci");
    expect((await bed.get("/api/sandbox", { key })).status).toBe(200);
    expect((await bed.get("/api/sandbox", { headers: { "x-api-key": key } })).status).toBe(200);
    const last = key.endsWith("A") ? "B" : "A";
    const wrong = [key.slice(0, -1) + last, key.slice(0, -1), `${key}x`, "aido_aaaaaaaa_", "secret", "a.b.c"];
    for (const each of wrong) {
      const reply = await bed.get("/api/sandbox", { key: each });
      expect(reply.status).toBe(401);
      expect(reply.json.error.code).toBe("INVALID_API_KEY");
      expect(reply.text).not.toContain(each);
    }
  });

  test("only the hash of a key's secret is kept", async () => {
    await using bed = await ApiBed.open({ guarded: true });
    const key = await bed.key("ci");
    const secret = key.slice("aido_12345678_".length);
    const [record] = await bed.store.apiKeys.list();
    expect(JSON.stringify(record)).not.toContain(secret);
    expect(record?.secretHash).toMatch(/^[0-9a-f]{64}$/);
  });

  test("keys expire and are revoked at once", async () => {
    await using bed = await ApiBed.open({ guarded: true });
    const old = await bed.key("old", { expiresAt: new Date(Date.now() - 1) });
    expect((await bed.get("/api/sandbox", { key: old })).json.error.message).toContain("expired");
    const key = await bed.key("ci", { expiresAt: new Date(Date.now() + 60_000) });
    expect((await bed.get("/api/sandbox", { key })).status).toBe(200);
    await bed.store.apiKeys.revoke(key.split("_")[1] ?? "", new Date());
    expect((await bed.get("/api/sandbox", { key })).status).toBe(401);
  });

  test("a server without keys becomes guarded when the first one is made", async () => {
    await using bed = await ApiBed.open();
    expect((await bed.get("/api/sandbox")).status).toBe(200);
    const key = await bed.key("first");
    expect((await bed.get("/api/sandbox")).status).toBe(401);
    expect((await bed.get("/api/sandbox", { key })).status).toBe(200);
  });

  test("a server that had a key stays guarded when the last one is revoked, unless it is told otherwise", async () => {
    for (const open of [false, true]) {
      await using bed = await ApiBed.open({ open });
      const key = await bed.key("first");
      await bed.store.apiKeys.revoke(key.split("_")[1] ?? "", new Date());
      const reply = await bed.get("/api/sandbox");
      expect(reply.status).toBe(open ? 200 : 401);
    }
  });

  test("scopes bound what a key may do", async () => {
    await using bed = await ApiBed.open({ guarded: true });
    const read = await bed.key("reader", { scopes: ["read"] });
    const write = await bed.key("writer", { scopes: ["write"] });
    const admin = await bed.key("boss", { scopes: ["admin"] });
    const refused = await bed.post("/api/sandbox", {}, { key: read });
    expect(refused.status).toBe(403);
    expect(refused.json.error).toMatchObject({
      code: "FORBIDDEN",
      message: expect.stringContaining("write"),
    });
    expect((await bed.get("/api/sandbox", { key: write })).status).toBe(403);
    expect((await bed.get("/api/evidence/verify", { key: write })).status).toBe(403);
    expect((await bed.get("/api/evidence/verify", { key: admin })).status).toBe(200);
    expect((await bed.post("/api/sandbox", {}, { key: admin })).status).toBe(201);
  });

  test("somebody else's sandbox cannot be told from none, whatever is asked of it", async () => {
    await using bed = await ApiBed.open({ guarded: true });
    const [mine, other] = [await bed.key("me"), await bed.key("them")];
    const id = await bed.sandbox(mine, { name: "box" });
    const run = await bed.exec(id, ["echo", "hi"], {}, mine);
    const base = `/api/sandbox/${id}`;
    const paths = bed.operations
      .filter(({ path, scope }) => path.includes(":containerId") && scope !== "admin")
      .map(({ method, path }) => [method.toUpperCase(), path] as const);
    expect(paths.length).toBeGreaterThan(20);
    for (const [method, path] of paths) {
      if (path.endsWith("/ws")) continue;
      const real = path.replace(":containerId", id).replace(":execId", run.json.id);
      const body = method === "GET" || method === "DELETE" ? undefined : BODIES[path.split("/").at(-1) ?? ""];
      const asksForKey = method === "DELETE" && path.endsWith("/ssh-keys");
      const asksForFile = path.endsWith(":containerId/file") ? "?filePath=x" : "?path=x";
      const query = /files|\/file$/.test(path) ? asksForFile : asksForKey ? "?key=SHA256:x" : "";
      const theirs = await bed.call(method, real + query, { key: other, ...(body && { body }) });
      const nobodys = await bed.call(method, real.replace(id, "zzzzzzzz") + query, {
        key: other,
        ...(body && { body }),
      });
      expect([method, path, theirs.status, theirs.json.error.code]).toEqual([
        method,
        path,
        404,
        "CONTAINER_NOT_FOUND",
      ]);
      const plain = (text: string) => text.replaceAll(id, "ID").replaceAll("zzzzzzzz", "ID");
      expect(plain(theirs.json.error.message)).toBe(plain(nobodys.json.error.message));
    }
    expect((await bed.exec(id, ["true"], {}, other)).status).toBe(404);
    expect((await bed.exec("box", ["true"], {}, other)).status).toBe(404);
    expect((await bed.get("/api/sandbox", { key: other })).json.sandboxes).toEqual([]);
    expect((await bed.get(`${base}`, { key: mine })).status).toBe(200);
  });

  test("a prefix that several owners share is only about one's own", async () => {
    await using bed = await ApiBed.open({ guarded: true });
    const [mine, other] = [await bed.key("me"), await bed.key("them")];
    const ids = await Promise.all(
      Array.from({ length: 40 }, (_, at) => bed.sandbox(at % 2 === 0 ? mine : other)),
    );
    const own = ids.filter((_, at) => at % 2 === 0);
    const shared = ids.find(
      (id, at) => at % 2 === 1 && own.some((each) => each.slice(0, 1) === id.slice(0, 1)),
    );
    // With 40 ids of 36 letters two owners share a first letter; longer prefixes are left to chance.
    for (const prefix of new Set([shared?.slice(0, 2) ?? "", ...ids.map((id) => id.slice(0, 2))])) {
      const reply = await bed.get(`/api/sandbox/${prefix}`, { key: mine });
      for (const id of ids.filter((_, at) => at % 2 === 1)) expect(reply.text).not.toContain(id);
    }
  });

  test("a page's cursor is one's own whole id: no other sandbox can be found out with it", async () => {
    await using bed = await ApiBed.open({ guarded: true });
    const [mine, other] = [await bed.key("me"), await bed.key("them")];
    const ids = [await bed.sandbox(mine), await bed.sandbox(mine), await bed.sandbox(mine)];
    const foreign = await bed.sandbox(other, { name: "theirs" });
    const ask = (before: string) => bed.get(`/api/sandbox?before=${before}`, { key: mine });
    const nobodys = await ask("zzzzzzzz");
    expect([nobodys.status, nobodys.json.error.code]).toEqual([404, "CONTAINER_NOT_FOUND"]);
    for (const cursor of [foreign, foreign.slice(0, 2), "theirs", ids[2]?.slice(0, 7) ?? ""]) {
      const reply = await ask(cursor);
      expect(reply.status).toBe(404);
      const plain = (text: string, id: string) => text.replaceAll(id, "ID");
      const { message } = reply.json.error;
      expect(plain(message, cursor)).toBe(plain(nobodys.json.error.message, "zzzzzzzz"));
    }
    await bed.call("DELETE", `/api/sandbox/${ids[1]}`, { key: mine });
    expect((await ask(ids[1] ?? "")).json.sandboxes.map((each: { id: string }) => each.id)).toEqual([ids[0]]);
    const admin = await bed.key("boss", { scopes: ["admin"] });
    expect((await bed.get(`/api/sandbox?before=${foreign}`, { key: admin })).json.sandboxes).toHaveLength(2);
  });

  test("a name is its owner's: nobody else's is in the way, is told of, or is reached by it", async () => {
    await using bed = await ApiBed.open({ guarded: true });
    const [mine, other] = [await bed.key("me"), await bed.key("them")];
    const local = await bed.aido.sandboxes.create({ name: "box" });
    const theirs = await bed.sandbox(other, { name: "box" });
    expect((await bed.get("/api/sandbox/box", { key: mine })).status).toBe(404);
    const own = await bed.sandbox(mine, { name: "box" });
    expect((await bed.get("/api/sandbox/box", { key: mine })).json.containerId).toBe(own);
    expect((await bed.exec("box", ["true"], {}, other)).json.containerId).toBe(theirs);
    const twice = await bed.post("/api/sandbox", { name: "box" }, { key: mine });
    expect([twice.status, twice.json.error.details.id]).toEqual([409, own]);
    expect(twice.text).not.toContain(theirs);
    const admin = await bed.key("boss", { scopes: ["admin"] });
    expect((await bed.get("/api/sandbox/box", { key: admin })).json.containerId).toBe(local.id);
    expect((await bed.get(`/api/sandbox/${theirs}`, { key: admin })).status).toBe(200);
    const bosses = await bed.sandbox(admin, { name: "box" });
    expect((await bed.get("/api/sandbox/box", { key: admin })).json.containerId).toBe(bosses);
    expect((await bed.aido.sandboxes.get("box")).id).toBe(local.id);
    await bed.aido.sandboxes.destroy(local.id);
    await expect(bed.aido.sandboxes.get("box")).rejects.toMatchObject({
      code: "CONTAINER_AMBIGUOUS",
      hint: "Use the id.",
    });
    expect((await bed.call("DELETE", "/api/sandbox/box", { key: mine })).json.containerId).toBe(own);
    expect((await bed.get("/api/sandbox/box", { key: mine })).status).toBe(404);
  });

  test("what the backend calls a container is no name that somebody else may have", async () => {
    await using bed = await ApiBed.open({ guarded: true });
    const [mine, other] = [await bed.key("me"), await bed.key("them")];
    for (const key of [mine, other]) {
      const id = await bed.sandbox(key, { name: "worker", profile: "swarm" });
      expect(bed.driver.spec(id).name).toBe(`aimi-${id}`);
    }
  });

  test("an expired sandbox of somebody else is not there either", async () => {
    await using bed = await ApiBed.open({ guarded: true });
    const [mine, other] = [await bed.key("me"), await bed.key("them")];
    const id = await bed.sandbox(mine, { options: { timeout: 1000 } });
    await expect
      .poll(() => bed.aido.sandboxes.expire().then(() => bed.driver.list()), { timeout: 10_000 })
      .toEqual([]);
    expect((await bed.get(`/api/sandbox/${id}`, { key: mine })).status).toBe(410);
    expect((await bed.get(`/api/sandbox/${id}`, { key: other })).status).toBe(404);
  });

  test("only an administrator gets a sandbox with walls taken away", async () => {
    await using bed = await ApiBed.open({ guarded: true });
    const [plain, admin] = [await bed.key("ada"), await bed.key("boss", { scopes: ["admin"] })];
    for (const body of [{ privileged: true }, { network: "host" }]) {
      const refused = await bed.post("/api/sandbox", body, { key: plain });
      expect([refused.status, refused.json.error.code]).toEqual([403, "FORBIDDEN"]);
      // Whether it can be had is then the driver's question.
      expect((await bed.post("/api/sandbox", body, { key: admin })).status).not.toBe(403);
    }
    expect((await bed.post("/api/sandbox", { network: "bridge" }, { key: plain })).status).toBe(201);
  });

  test("a page of another origin cannot use a server that has no keys", async () => {
    await using bed = await ApiBed.open();
    const foreign = [
      { origin: "https://evil.example", host: "localhost:3000" },
      { origin: "null", host: "localhost:3000" },
      { host: "evil.example:3000" },
      { origin: "http://evil.example:3000", host: "evil.example:3000" },
      { origin: "http://3000-x.localhost:3000", host: "localhost:3000" },
    ];
    for (const headers of foreign) {
      const reply = await bed.post("/api/sandbox", {}, { headers });
      expect(reply.status).toBe(403);
      expect(reply.headers.get("access-control-allow-origin")).toBeNull();
    }
    expect(await bed.driver.list()).toEqual([]);
    const own = { origin: "http://localhost:3000", host: "localhost:3000" };
    expect((await bed.post("/api/sandbox", {}, { headers: own })).status).toBe(201);
    expect((await bed.get("/api/sandbox", { headers: { host: "127.0.0.1:3000" } })).status).toBe(200);
  });

  test("CORS is off unless an origin is named", async () => {
    await using off = await ApiBed.open({ guarded: true });
    const key = await off.key("k");
    const headers = { origin: "https://app.example" };
    expect(
      (await off.get("/api/sandbox", { key, headers })).headers.get("access-control-allow-origin"),
    ).toBeNull();
    const preflight = await off.call("OPTIONS", "/api/sandbox", { headers });
    expect(preflight.headers.get("access-control-allow-origin")).toBeNull();

    await using on = await ApiBed.open({ guarded: true, corsOrigins: ["https://app.example"] });
    for (const path of ["/api/sandbox", "/nowhere", "/api/sandbox/x/files?path=y"]) {
      const reply = await on.get(path, { headers });
      expect(reply.headers.get("access-control-allow-origin")).toBe("https://app.example");
    }
    const asked = await on.call("OPTIONS", "/api/sandbox", { headers });
    expect(asked.status).toBe(204);
    expect(asked.headers.get("access-control-allow-headers")).toContain("authorization");
    const methods = asked.headers.get("access-control-allow-methods")?.split(", ");
    expect(methods).toEqual(expect.arrayContaining(on.operations.map(({ method }) => method.toUpperCase())));
    const other = await on.get("/health", { headers: { origin: "https://app.example.evil" } });
    expect(other.headers.get("access-control-allow-origin")).toBeNull();
  });
});

const BODIES: Readonly<Record<string, object>> = {
  run: { message: "m" },
  stream: { message: "m" },
  cancel: {},
  "ssh-keys": { publicKey: "ssh-ed25519 AAAA" },
  diff: { fromExecId: "a", toExecId: "b" },
  restore: { url: "s3://bucket/x" },
  rollback: { executionId: "a" },
  timeout: { timeout: 5000 },
  move: { from: "a", to: "b" },
  mkdir: { path: "a" },
  resize: { rows: 1, cols: 1 },
  signal: {},
  stop: {},
};
