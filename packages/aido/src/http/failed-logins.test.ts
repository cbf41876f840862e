import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, request } from "node:http";
import type { AddressInfo } from "node:net";
import { AidoError, toAidoError } from "@aido/sdk/protocol";
import { getRequestListener } from "@hono/node-server";
import { describe, expect, test } from "vitest";
import { ApiBed } from "../../test/server/api-bed.ts";
import { FailedLogins } from "./auth/failed-logins.ts";

const WRONG = `aido_aaaaaaaa_${"A".repeat(43)}`;

/** The API on a real server, asked from an address of the loopback network. */
async function listening(bed: ApiBed) {
  const server = createServer(getRequestListener(bed.app.fetch));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    ask: async (localAddress: string, path: string, key: string) => {
      const headers = { authorization: `Bearer ${key}` };
      const asked = request({ host: "127.0.0.1", port, path, localAddress, headers, agent: false }).end();
      const [reply] = (await once(asked, "response")) as [
        { statusCode: number; headers: IncomingHttpHeaders; resume(): void },
      ];
      reply.resume();
      return { status: reply.statusCode, retryAfter: Number(reply.headers["retry-after"]) };
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

describe("wrong keys and tokens", () => {
  test("of one address are refused with 429 after too many; right keys go on, from there and from elsewhere", async () => {
    await using bed = await ApiBed.open({ guarded: true, failedLogins: 3 });
    await using server = await listening(bed);
    const key = await bed.key("ci");
    const from = (address: string, sent: string) => server.ask(address, "/api/sandbox", sent);
    for (let at = 0; at < 3; at += 1) expect((await from("127.0.0.1", WRONG)).status).toBe(401);
    const refused = await from("127.0.0.1", WRONG);
    expect(refused.status).toBe(429);
    expect(refused.retryAfter).toBeGreaterThan(0);
    expect((await from("127.0.0.2", WRONG)).status).toBe(401);
    expect((await from("127.0.0.2", key)).status).toBe(200);
    expect((await from("127.0.0.1", key)).status).toBe(200);
  });

  test("of a sandbox are not even looked at after too many from one address; others are not locked out", async () => {
    await using bed = await ApiBed.open({ guarded: true, failedLogins: 3 });
    await using server = await listening(bed);
    const key = await bed.key("ci");
    const id = await bed.sandbox(key, { profile: "sidecar", token: "the-first-one-1234" });
    const other = await bed.sandbox(key, { profile: "sidecar", token: "the-other-one-5678" });
    const path = (sandbox: string) => `/sidecar/${sandbox}/terminals`;
    for (const guess of ["0000", "1111", "2222"]) {
      expect((await server.ask("127.0.0.1", path(id), guess)).status).toBe(403);
    }
    expect((await server.ask("127.0.0.1", path(id), "the-first-one-1234")).status).toBe(429);
    expect((await server.ask("127.0.0.2", path(id), "the-first-one-1234")).status).toBe(200);
    expect((await server.ask("127.0.0.1", path(other), "the-other-one-5678")).status).toBe(200);
  });

  test("beyond the limit are in no audit log, and requests without any are not counted", async () => {
    await using bed = await ApiBed.open({ guarded: true, failedLogins: 2 });
    for (let at = 0; at < 9; at += 1) expect((await bed.post("/api/sandbox", {})).status).toBe(401);
    const replies: number[] = [];
    for (let at = 0; at < 9; at += 1)
      replies.push((await bed.post("/api/sandbox", {}, { key: WRONG })).status);
    expect(replies.filter((status) => status === 429)).toHaveLength(7);
    const admin = await bed.key("boss", { scopes: ["admin"] });
    await bed.get("/api/audit", { key: admin });
    const { entries } = (await bed.get("/api/audit?limit=100", { key: admin })).json;
    expect(entries.filter(({ code }: { code: string }) => code === "INVALID_API_KEY")).toHaveLength(2);
    expect(entries.filter(({ code }: { code: string }) => code === "RATE_LIMITED")).toEqual([]);
  });

  test("are counted for an IPv6 client's whole network, and for IPv4 in either spelling", async () => {
    const failed = new FailedLogins(1, () => 0);
    const codeOf = (address: string) =>
      failed
        .watch(address, () => Promise.reject(new AidoError("INVALID_API_KEY", "no")))
        .catch((thrown: unknown) => toAidoError(thrown).code);
    expect(await codeOf("2001:db8:0:1::5")).toBe("INVALID_API_KEY");
    expect(await codeOf("2001:db8::1:9:8:7:6")).toBe("RATE_LIMITED");
    expect(await codeOf("2001:db8:0:2::5")).toBe("INVALID_API_KEY");
    expect(await codeOf("192.0.2.1")).toBe("INVALID_API_KEY");
    expect(await codeOf("::ffff:192.0.2.1")).toBe("RATE_LIMITED");
    expect(await codeOf("192.0.2.2")).toBe("INVALID_API_KEY");
  });
});
