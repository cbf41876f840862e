import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { ApiBed, type Reply } from "../../test/server/api-bed.ts";
import { JwtVerifier } from "./auth/jwt-verifier.ts";
import { errorReply } from "./error-reply.ts";

function signed(claims: object, secret: string): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${part({ alg: "HS256" })}.${part(claims)}`;
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
}

describe("what is kept of requests", () => {
  test("S3-45 the audit log knows who asked for what, and survives the sandbox", async () => {
    await using bed = await ApiBed.open({ guarded: true });
    const [mine, other] = [await bed.key("ada"), await bed.key("eve")];
    const id = await bed.sandbox(mine);
    await bed.exec(id, ["true"], {}, mine);
    await bed.exec(id, ["true"], {}, other);
    await bed.call("DELETE", `/api/sandbox/${id}`, { key: mine });
    const { entries } = (await bed.get(`/api/audit?sandbox=${id}`, { key: mine })).json;
    expect(entries.map((entry: { operation: string }) => entry.operation)).toEqual([
      "deleteSandbox",
      "exec",
      "createSandbox",
    ]);
    expect(entries[0]).toMatchObject({
      name: "ada",
      sandbox: id,
      status: 200,
      requestId: expect.any(String),
    });
    const theirs = (await bed.get("/api/audit", { key: other })).json.entries;
    expect(theirs).toMatchObject([
      { name: "eve", operation: "exec", status: 404, code: "CONTAINER_NOT_FOUND" },
    ]);
    const admin = await bed.key("boss", { scopes: ["admin"] });
    const all = (await bed.get("/api/audit", { key: admin })).json.entries;
    expect(all.map(({ name, operation }: Record<string, string>) => [name, operation]).toReversed()).toEqual([
      ["ada", "createSandbox"],
      ["ada", "exec"],
      ["eve", "exec"],
      ["ada", "deleteSandbox"],
      ["ada", "listAudit"],
      ["eve", "listAudit"],
    ]);
  });

  test("S3-45 every operation that needs a key is kept: input and sizes each time, the same read once a minute", async () => {
    await using bed = await ApiBed.open({ guarded: true });
    const [mine, other] = [await bed.key("ada"), await bed.key("eve")];
    const id = await bed.sandbox(mine);
    const { json } = await bed.exec(id, ["cat"], { background: true, stdin: true }, mine);
    const exec = `/api/sandbox/${id}/exec/${json.id}`;
    for (let at = 0; at < 3; at += 1) {
      await bed.call("POST", `${exec}/stdin`, { key: mine, raw: "x" });
      await bed.get(exec, { key: mine });
      await bed.get(exec, { key: other });
      await bed.get("/metrics", { key: mine });
      await bed.get("/api/metrics", { key: mine });
      await bed.get("/health");
    }
    await bed.post(`${exec}/resize`, { rows: 1, columns: 1 }, { key: mine });
    const admin = await bed.key("boss", { scopes: ["admin"] });
    const { entries } = (await bed.get("/api/audit", { key: admin })).json;
    const told = entries.map((entry: Record<string, string>) => `${entry["name"]} ${entry["operation"]}`);
    expect(told.toReversed()).toEqual([
      "ada createSandbox",
      "ada exec",
      "ada writeExecStdin",
      "ada getExec",
      "eve getExec",
      "ada writeExecStdin",
      "ada writeExecStdin",
      "ada resizeExec",
    ]);
  });

  test("whoever asks often for a sandbox that is gone still reads its evidence", async () => {
    await using bed = await ApiBed.open({ guarded: true });
    const mine = await bed.key("ada");
    const id = await bed.sandbox(mine);
    await bed.call("DELETE", `/api/sandbox/${id}`, { key: mine });
    for (let at = 0; at < 120; at += 1) await bed.exec(id, ["true"], {}, mine);
    expect((await bed.get(`/api/sandbox/${id}/evidence`, { key: mine })).status).toBe(200);
  });

  test("a refused request is on record too", async () => {
    await using bed = await ApiBed.open({ guarded: true });
    await bed.post("/api/sandbox", {}, { key: "aido_aaaaaaaa_wrong" });
    const admin = await bed.key("boss", { scopes: ["admin"] });
    expect((await bed.get("/api/audit", { key: admin })).json.entries).toMatchObject([
      { operation: "createSandbox", owner: "unknown", status: 401, code: "INVALID_API_KEY" },
    ]);
  });

  test("the audit log is read in pages", async () => {
    await using bed = await ApiBed.open();
    for (let at = 0; at < 5; at += 1) await bed.post("/api/sandbox", { image: 7 });
    const first = (await bed.get("/api/audit?limit=3")).json;
    const rest = (await bed.get(`/api/audit?limit=3&before=${first.next}`)).json;
    const ids = [...first.entries, ...rest.entries].map((entry: { id: number }) => entry.id);
    expect(new Set(ids).size).toBe(5);
    expect(rest.next).toBeNull();
    expect((await bed.get("/api/audit?limit=0")).status).toBe(400);
  });

  test("the owner reads a sandbox's evidence after its end; others never do", async () => {
    await using bed = await ApiBed.open({ guarded: true });
    const [mine, other] = [await bed.key("ada"), await bed.key("eve")];
    const id = await bed.sandbox(mine);
    await bed.exec(id, ["echo", "x"], {}, mine);
    await bed.get(`/api/sandbox/${id}/evidence`, { key: other });
    await bed.call("DELETE", `/api/sandbox/${id}`, { key: mine });
    const evidence = await bed.get(`/api/sandbox/${id}/evidence`, { key: mine });
    const events = evidence.text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).event);
    expect(events).toEqual(expect.arrayContaining(["sandbox.created", "exec.started"]));
    expect((await bed.get(`/api/sandbox/${id}/evidence`, { key: other })).status).toBe(404);
    expect((await bed.get("/api/sandbox/nope/evidence", { key: mine })).status).toBe(404);
    const admin = await bed.key("boss", { scopes: ["admin"] });
    expect((await bed.get(`/api/evidence/verify?sandbox=${id}`, { key: admin })).json.verdicts).toMatchObject(
      [{ ok: true }],
    );
  });

  test("whoever calls a sandbox like somebody else's reads its own evidence only", async () => {
    await using bed = await ApiBed.open({ guarded: true });
    const [mine, other] = [await bed.key("ada"), await bed.key("eve")];
    const id = await bed.sandbox(mine);
    const named = await bed.sandbox(other, { name: id });
    const evidence = () => bed.get(`/api/sandbox/${id}/evidence`, { key: other });
    // What is named so is its own.
    expect(JSON.parse((await evidence()).text.split("\n")[0] ?? "").detail.name).toBe(id);
    expect((await bed.post(`/api/sandbox/${id}/ports/80`, {}, { key: other })).json.containerId).toBe(named);
    for (const step of ["watch", "gone"]) {
      if (step === "gone") await bed.call("DELETE", `/api/sandbox/${id}`, { key: mine });
      else await bed.call("DELETE", `/api/sandbox/${named}`, { key: other });
      expect([step, (await evidence()).status]).toEqual([step, 404]);
    }
    const entries = (await bed.get("/api/audit", { key: other })).json.entries;
    const done = entries.filter(({ status }: { status: number }) => status < 400);
    expect(done.map((entry: { sandbox: string }) => entry.sandbox)).not.toContain(id);
    expect((await bed.get(`/api/sandbox/${id}/evidence`, { key: mine })).status).toBe(200);
  });

  test("S3-72 S3-73 each request is one line of the log: what, how it ended, how long it took, under the id of its reply", async () => {
    await using bed = await ApiBed.open();
    const made = await bed.post("/api/sandbox", {});
    const missing = await bed.get("/api/sandbox/nothere1");
    const lines = bed.logged.map((line) => JSON.parse(line));
    const of = (reply: Reply) =>
      lines.filter(({ requestId }) => requestId === reply.headers.get("aido-request-id"));
    expect(of(made)).toEqual([
      expect.objectContaining({ event: "createSandbox", status: 201, durationMs: expect.any(Number) }),
    ]);
    expect(of(missing)).toEqual([
      expect.objectContaining({ event: "getSandbox", status: 404, code: "CONTAINER_NOT_FOUND" }),
    ]);
  });

  test("keys, tokens, variables, files and output are never in the log, and tokens not in the audit log", async () => {
    const jwt = new JwtVerifier({ secret: "of the operator" });
    await using bed = await ApiBed.open({ guarded: true, jwt });
    const key = await bed.key("ada");
    const secrets = ["CANARY-env-1", "CANARY-file-2", "CANARY-stdin-3", "CANARY-put-4", "CANARY-label-5"];
    const id = await bed.sandbox(key, { env: { TOKEN: "CANARY-env-1" }, labels: { note: "CANARY-label-5" } });
    await bed.exec(id, ["cat", "f"], { files: { f: "CANARY-file-2" } }, key);
    await bed.exec(id, ["cat"], { stdin: "CANARY-stdin-3", env: { PASSWORD: "CANARY-env-1" } }, key);
    await bed.call("PUT", `/api/sandbox/${id}/files?path=g`, { key, raw: "CANARY-put-4" });
    await bed.get(`/api/sandbox/${id}/files?path=g`, { key });
    await bed.get(`/api/sandbox/${id}/history`, { key });
    await bed.get("/api/sandbox", { key: `${key}x` });
    const token = signed({ sub: "eve", exp: 4_000_000_000 }, "of the operator");
    const stale = signed({ sub: "eve", exp: 1 }, "of the operator");
    expect((await bed.get("/api/sandbox", { key: token })).status).toBe(200);
    expect((await bed.get("/api/sandbox", { key: stale })).status).toBe(401);
    const sidecar = (await bed.post("/api/sandbox", { profile: "sidecar" }, { key })).json;
    await bed.get(`/sidecar/${sidecar.id}/terminals`, { key: sidecar.token });
    await bed.get(`/sidecar/${sidecar.id}/terminals`, { key: `${sidecar.token}x` });
    const { url } = (await bed.post(`/api/sandbox/${id}/ports/8000`, {}, { key })).json;
    const port = /[a-z2-7]{26}/.exec(url)?.[0];
    const tokens = [token, stale, sidecar.token, port].map((text) => String(text).split(".").at(-1) ?? "");
    for (const text of tokens) expect(text.length).toBeGreaterThan(20);
    bed.driver.failNext("create", new Error("the engine stumbled"));
    await bed.post("/api/sandbox", { env: { TOKEN: "CANARY-env-1" } }, { key });
    await bed.call("DELETE", `/api/sandbox/${id}`, { key });
    const admin = await bed.key("boss", { scopes: ["admin"] });
    const audit = (await bed.get("/api/audit?limit=100", { key: admin })).text;
    expect(audit).toContain("jwt:eve");
    expect(bed.logged.length).toBeGreaterThan(5);
    const log = bed.logged.join("");
    for (const secret of [key, key.slice(14), ...tokens, ...secrets]) {
      expect(log).not.toContain(secret);
      expect(audit).not.toContain(secret);
    }
    expect(log).toContain("the engine stumbled");
  });

  test("a failure of the backend has its reason in the log and in the reply, under the same id", async () => {
    await using bed = await ApiBed.open();
    bed.driver.failNext("create", new Error("the engine stumbled"));
    const reply = await bed.post("/api/sandbox", {}, { headers: { "aido-request-id": "req-1" } });
    expect(reply.status).toBe(500);
    expect(reply.json.error).toMatchObject({
      code: "CONTAINER_CREATION_FAILED",
      details: { cause: "the engine stumbled" },
      requestId: "req-1",
    });
    expect(reply.headers.get("aido-request-id")).toBe("req-1");
    expect(bed.logged.find((line) => line.includes("the engine stumbled"))).toContain("req-1");
  });

  test("an error nobody foresaw keeps its reason out of the reply", async () => {
    const { response } = errorReply(new Error("internal address 10.0.0.7"), "req-1");
    const body = await response.text();
    expect(response.status).toBe(500);
    expect(body).not.toContain("10.0.0.7");
    expect(JSON.parse(body).error).toMatchObject({ code: "INTERNAL_SERVER_ERROR", requestId: "req-1" });
  });
});
