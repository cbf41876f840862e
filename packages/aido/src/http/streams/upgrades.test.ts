import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { ApiBed } from "../../../test/server/api-bed.ts";
import { StreamLogger } from "../../log/stream-logger.ts";
import { AuditTrail } from "../audit-trail.ts";
import { BearerAuthenticator } from "../auth/authenticator.ts";
import { FailedLogins } from "../auth/failed-logins.ts";
import { HttpMetrics } from "../metrics.ts";
import { TokenBuckets } from "../rate-limiter.ts";
import { upgradeHandler } from "./upgrades.ts";

/** The API and its WebSockets on a port. */
async function listening(options: { rateLimit?: number } = {}) {
  const bed = await ApiBed.open({ guarded: true });
  const lines: string[] = [];
  const logger = new StreamLogger({
    level: "info",
    format: "json",
    write: (line) => lines.push(line),
    now: () => new Date(),
  });
  const audit = new AuditTrail(bed.store.audit, logger);
  const nothing = async () => ({});
  const metrics = new HttpMetrics(nothing, nothing);
  const handler = upgradeHandler({
    aido: bed.aido,
    authenticator: new BearerAuthenticator({
      keys: bed.store.apiKeys,
      jwt: undefined,
      required: true,
      allowedOrigins: [],
    }),
    failedLogins: new FailedLogins(),
    rateLimiter: new TokenBuckets(options.rateLimit ?? 0),
    audit,
    metrics,
    logger,
    isDraining: () => false,
    other: async () => false,
  });
  const server = createServer().on("upgrade", handler.handle).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    bed,
    audit,
    metrics,
    lines,
    /** The status of the answer. */
    async connect(path: string): Promise<{ status: number; socket: WebSocket; headers: object }> {
      const socket = new WebSocket(`${url}${path}`);
      socket.on("error", () => undefined);
      const refused = once(socket, "unexpected-response").then(([, response]) => {
        response.resume();
        return { status: Number(response.statusCode), headers: response.headers };
      });
      const open = once(socket, "open").then(() => ({ status: 101, headers: {} }));
      return { ...(await Promise.race([refused, open])), socket };
    },
    async [Symbol.asyncDispose]() {
      handler.close(0);
      server.close();
      server.closeAllConnections();
      metrics.close();
      await audit.close();
      await bed[Symbol.asyncDispose]();
    },
  };
}

describe("sockets are requests like any other", () => {
  test("each that is opened, refused or sends a signal is on record, counted and logged", async () => {
    await using server = await listening();
    const { bed } = server;
    const key = await bed.key("me");
    const id = await bed.sandbox(key);
    const { json } = await bed.exec(id, ["cat"], { background: true, stdin: true }, key);
    const path = `/api/sandbox/${id}/exec/${json.id}/ws`;
    expect((await server.connect(path)).status).toBe(401);
    expect((await server.connect(`/api/sandbox/${id}/exec/nope/ws?key=${key}`)).status).toBe(404);
    const { status, socket } = await server.connect(`${path}?key=${key}`);
    expect(status).toBe(101);
    socket.send(JSON.stringify({ type: "stdin", data: "not kept" }));
    socket.send(JSON.stringify({ type: "signal", signal: "NONE" }));
    socket.send(JSON.stringify({ type: "signal", signal: "KILL" }));
    await once(socket, "close");
    const entries = (await server.audit.list({ limit: 20 })).filter(({ operation }) =>
      ["openExecSocket", "signalExec"].includes(operation),
    );
    expect(entries.toReversed().map(({ operation, status, code }) => [operation, status, code])).toEqual([
      ["openExecSocket", 401, expect.any(String)],
      ["openExecSocket", 404, "EXECUTION_NOT_FOUND"],
      ["openExecSocket", 101, undefined],
      ["signalExec", 400, "VALIDATION_ERROR"],
      ["signalExec", 200, undefined],
    ]);
    expect(entries.slice(0, 3)).toMatchObject(Array(3).fill({ name: "me", sandbox: id }));
    const numbers = await server.metrics.render();
    expect(numbers).toContain('aido_http_requests_total{operation="openExecSocket",status="101"} 1');
    expect(numbers).toContain('aido_http_requests_total{operation="signalExec",status="200"} 1');
    expect(server.lines.filter((line) => line.includes('"openExecSocket"'))).toHaveLength(3);
    expect(server.lines.join("")).not.toContain(key);
  });

  test("a path that is none is not there, and no failure of the server", async () => {
    await using server = await listening();
    for (const path of ["//", "///x", "/api/nowhere"]) expect((await server.connect(path)).status).toBe(404);
    expect(server.lines.join()).not.toContain("INTERNAL_SERVER_ERROR");
  });

  test("a caller that opens too many, or sends too many signals, is told when to come again", async () => {
    await using server = await listening({ rateLimit: 3 });
    const { bed } = server;
    const key = await bed.key("me");
    const id = await bed.sandbox(key);
    const { json } = await bed.exec(id, ["stubborn"], { background: true }, key);
    const path = `/api/sandbox/${id}/exec/${json.id}/ws?key=${key}`;
    const { socket } = await server.connect(path);
    const told: { type: string; error?: { code: string } }[] = [];
    socket.on("message", (data) => told.push(JSON.parse(String(data))));
    for (let sent = 0; sent < 3; sent += 1) socket.send(JSON.stringify({ type: "signal", signal: "HUP" }));
    await expect
      .poll(() => told.filter(({ type }) => type === "error"))
      .toMatchObject([{ error: { code: "RATE_LIMITED" } }]);
    const refused = await server.connect(path);
    expect(refused.status).toBe(429);
    expect(refused.headers).toMatchObject({ "retry-after": expect.any(String) });
    socket.terminate();
  });

  test("a key's own limit counts for its sockets and their signals, though the server has none", async () => {
    await using server = await listening();
    const { bed } = server;
    const key = await bed.key("me", { limits: { rateLimit: 2 } });
    const free = await bed.key("you");
    const id = await bed.sandbox(key);
    const { json } = await bed.exec(id, ["stubborn"], { background: true }, key);
    const path = `/api/sandbox/${id}/exec/${json.id}/ws`;
    const { socket } = await server.connect(`${path}?key=${key}`);
    const told: { type: string; error?: { code: string } }[] = [];
    socket.on("message", (data) => told.push(JSON.parse(String(data))));
    for (let sent = 0; sent < 2; sent += 1) socket.send(JSON.stringify({ type: "signal", signal: "HUP" }));
    await expect
      .poll(() => told.filter(({ type }) => type === "error"))
      .toMatchObject([{ error: { code: "RATE_LIMITED" } }]);
    expect((await server.connect(`${path}?key=${key}`)).status).toBe(429);
    for (let asked = 0; asked < 4; asked += 1) {
      expect((await server.connect(`${path}?key=${free}`)).status).toBe(404);
    }
    socket.terminate();
  });
});
