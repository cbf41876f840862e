import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { sidecarErrorReply } from "@aido/sdk/schemas";
import { expect, test } from "vitest";
import { SidecarBed } from "../../../test/server/sidecar-bed.ts";

const MISSING = { code: "UNAUTHORIZED", message: "Missing authentication token" };
const WRONG = { code: "FORBIDDEN", message: "Invalid authentication token" };

test("S2-72 S2-133 every operation but health is refused without a token, with a wrong one and with an API key", async () => {
  await using bed = await SidecarBed.open({ guarded: true });
  const key = await bed.api.key("admin", { scopes: ["read", "write", "admin"] });
  const operations = bed.api.operations.filter(({ scope }) => scope === "sandbox");
  expect(operations.length).toBeGreaterThan(10);
  for (const { method, path } of operations) {
    const url = path.replace(":sandboxId", bed.id).replace(":terminalId", "term_0123456789abcdef");
    const ask = (headers: Record<string, string>) =>
      bed.api.call(method.toUpperCase(), url, { headers, ...(method === "get" ? {} : { body: {} }) });
    const missing = await ask({});
    expect([missing.status, missing.json.error]).toMatchObject([401, MISSING]);
    for (const authorization of ["Bearer", "Bearer ", "Basic eA==", bed.token]) {
      expect((await ask({ authorization })).status).toBe(401);
    }
    for (const secret of ["0".repeat(64), `${bed.token}0`, bed.token.toUpperCase(), key]) {
      const wrong = await ask({ authorization: `Bearer ${secret}` });
      expect([wrong.status, wrong.json.error]).toMatchObject([403, WRONG]);
      expect(sidecarErrorReply.safeParse(wrong.json).success).toBe(true);
    }
    expect((await ask({ "x-api-key": key })).status).toBe(401);
  }
});

test("S2-72 the token of a sandbox opens neither the API nor another sandbox", async () => {
  await using bed = await SidecarBed.open();
  const other = await bed.api.post("/api/sandbox", { profile: "sidecar" });
  const crossed = await bed.api.post(
    `/sidecar/${other.json.id}/terminals/commands`,
    { command: "true" },
    { key: bed.token },
  );
  expect(crossed.status).toBe(403);
  expect((await bed.api.get("/api/sandbox", { key: bed.token })).status).toBe(401);
  expect((await bed.api.get(`/api/sandbox/${bed.id}`, { key: bed.token })).status).toBe(401);
});

test("a sandbox that is not there cannot be told from a wrong token", async () => {
  await using bed = await SidecarBed.open();
  const plain = await bed.api.sandbox();
  const short = bed.id.slice(0, 20);
  const told = async (id: string) => {
    const reply = await bed.api.post(
      `/sidecar/${id}/terminals/commands`,
      { command: "true" },
      { key: "wrong" },
    );
    const { requestId: _, ...error } = reply.json.error;
    return [reply.status, error];
  };
  const expected = await told(bed.id);
  for (const id of ["sandbox-00000000-0000-4000-8000-000000000000", plain, short, "..%2f..", "%00"]) {
    expect(await told(id)).toEqual(expected);
  }
  const prefix = await bed.api.post(
    `/sidecar/${short}/terminals/commands`,
    { command: "true" },
    { key: bed.token },
  );
  expect(prefix.status).toBe(403);
});

test("a token outlives stop and start, and is of no use once its sandbox is destroyed", async () => {
  await using bed = await SidecarBed.open();
  await bed.api.post(`/api/sandbox/${bed.id}/stop`, {});
  const stopped = await bed.post("/terminals/commands", { command: "true" });
  expect([stopped.status, stopped.json.error.code]).toEqual([409, "CONTAINER_NOT_RUNNING"]);
  await bed.api.post(`/api/sandbox/${bed.id}/start`, {});
  expect((await bed.post("/terminals/commands", { command: "true" })).status).toBe(200);
  await bed.api.call("DELETE", `/api/sandbox/${bed.id}`);
  expect((await bed.post("/terminals/commands", { command: "true" })).status).toBe(403);
});

test("requests are limited per sandbox, and bodies in size, as elsewhere", async () => {
  await using bed = await SidecarBed.open({ rateLimit: 2, maxBodyBytes: 1000 });
  const other = await bed.api.post("/api/sandbox", { profile: "sidecar" });
  const large = await bed.post("/files/write", { path: "a", content: "x".repeat(2000) });
  expect([large.status, large.json]).toMatchObject([413, { success: false }]);
  await bed.post("/terminals/commands", { command: "true" });
  const third = await bed.post("/terminals/commands", { command: "true" });
  expect([third.status, third.json.error.code]).toEqual([429, "RATE_LIMITED"]);
  expect(third.headers.get("retry-after")).not.toBeNull();
  const beside = await bed.api.post(
    `/sidecar/${other.json.id}/terminals/commands`,
    { command: "true" },
    { key: other.json.token },
  );
  expect(beside.status).toBe(200);
});

test("paths and methods that are not there are told in the same shape", async () => {
  await using bed = await SidecarBed.open();
  const none = await bed.get("/nothing");
  expect([none.status, none.json]).toMatchObject([
    404,
    { success: false, error: { code: "RESOURCE_NOT_FOUND" } },
  ]);
  const method = await bed.call("PUT", "/files/write");
  expect([method.status, method.headers.get("allow")]).toEqual([405, "POST"]);
});

test("neither the log, the audit log, the evidence nor the store has a token in it", async () => {
  await using bed = await SidecarBed.open();
  await bed.post("/terminals/commands", { command: "echo hello" });
  await bed.post("/files/write", { path: "a", content: "b" });
  const terminal = await bed.terminal({ name: "one" });
  await bed.call("DELETE", `/terminals/${terminal}`);
  await bed.call("POST", "/terminals/commands", { key: "wrong", body: { command: "true" } });
  const audit = await bed.api.get("/api/audit");
  expect(audit.text).toContain("runSidecarCommand");
  expect(audit.text).not.toContain(bed.token);
  expect(bed.api.logged.length).toBeGreaterThan(0);
  expect(bed.api.logged.join("")).not.toContain(bed.token);
  const files = readdirSync(bed.api.root, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  expect(files.some(({ name }) => name === "aido.db")).toBe(true);
  for (const { parentPath, name } of files) {
    expect(readFileSync(join(parentPath, name)).includes(bed.token), name).toBe(false);
  }
});

test("the OpenAPI document has every operation, with the token it needs", async () => {
  await using bed = await SidecarBed.open();
  const { paths } = (await bed.api.get("/openapi.json")).json;
  expect(paths["/sidecar/{sandboxId}/health"].get.security).toEqual([]);
  const run = paths["/sidecar/{sandboxId}/terminals/commands"].post;
  expect(run.security).toEqual([{ sandboxToken: [] }]);
  expect(JSON.stringify(run.responses.default)).toContain("SidecarError");
  expect(paths["/sidecar/{sandboxId}/terminals/{terminalId}"].patch.operationId).toBe(
    "resizeSidecarTerminal",
  );
});
