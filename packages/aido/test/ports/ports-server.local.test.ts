import { statSync } from "node:fs";
import { join } from "node:path";
import { Sandbox } from "@aido/sdk";
import { expect, test } from "vitest";
import { ServerBed, until } from "../server/server-bed.ts";

const SERVER = `
import socket
server = socket.create_server(("127.0.0.1", 8080))
while True:
    peer = server.accept()[0]
    head = peer.recv(65536)
    peer.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(head) + head)
    peer.close()
`;

test("the SDK's address of a port leads through the built server, without a key and after a restart", async () => {
  await using bed = await ServerBed.start({ driver: "local" });
  const sandbox = await Sandbox.create({ image: bed.image, ttlMs: 120_000 }, { url: bed.url });
  await sandbox.start(["python3", "-c", SERVER]);
  const url = await sandbox.getUrl(8080);
  expect(url).toMatch(new RegExp(`^${bed.url}/p/${sandbox.id}/8080/[a-z2-7]{26}/$`));
  await until("the program listens", async () => (await fetch(url)).status === 200);
  const said = await (
    await fetch(`${url}some/path?q=1`, { headers: { authorization: "Bearer aido_x" } })
  ).text();
  expect(said).toMatch(/^GET \/some\/path\?q=1 HTTP\/1\.1\r\nHost: localhost:8080\r\n/);
  expect(said).not.toContain("aido_x");
  const metrics = await (await fetch(`${bed.url}/metrics`)).text();
  expect(metrics).toMatch(/aido_http_requests_total\{operation="proxyPort",status="200"\} \d/);
  expect(statSync(join(bed.dataDir, "server.key")).mode & 0o777).toBe(0o600);
  const { pathname } = new URL(url);
  await bed.signal("SIGTERM");
  await bed.start();
  expect((await fetch(bed.url + pathname)).status).toBe(200);
  expect((await fetch(bed.url + pathname.replace("8080", "8081"))).status).toBe(404);
});

test("S2-49 a request to a port wakes a stopped sandbox that was made to, and no other", async () => {
  await using bed = await ServerBed.start({ driver: "local" });
  const make = async (autoResume: boolean) => {
    const sandbox = await Sandbox.create({ image: bed.image, ttlMs: 120_000, autoResume }, { url: bed.url });
    const url = await sandbox.getUrl(8080);
    await bed.post(`/api/sandbox/${sandbox.id}/stop`, {});
    return { url, state: async () => (await bed.get(`/api/sandbox/${sandbox.id}`)).json.state, sandbox };
  };
  const [willing, plain] = [await make(true), await make(false)];
  expect([await willing.state(), await plain.state()]).toEqual(["stopped", "stopped"]);
  // A stop ends whatever listened: who asks is told so by a sandbox that runs again.
  expect((await fetch(willing.url)).status).toBe(502);
  expect(await willing.state()).toBe("running");
  await willing.sandbox.start(["python3", "-c", SERVER]);
  await until("the program listens", async () => (await fetch(willing.url)).status === 200);
  expect((await fetch(plain.url)).status).toBe(409);
  expect(await plain.state()).toBe("stopped");
});

test("a server with a pool hands out from it, says so, and leaves nothing when it ends", async () => {
  await using bed = await ServerBed.start({ driver: "local", env: { AIDO_SERVE_POOL: "host=2" } });
  const ready = async () => (await bed.get("/api/pool")).json.pool[0]?.ready;
  await until("the pool is full", async () => (await ready()) === 2);
  expect((await bed.get("/api/sandbox")).json.sandboxes).toEqual([]);
  const made = await bed.post("/api/sandbox", {
    image: "host",
    env: { A: "b" },
    options: { timeout: 60_000 },
  });
  expect(made.status).toBe(201);
  expect((await bed.exec(made.json.containerId, ["sh", "-c", "echo $A"])).json.stdout).toBe("b\n");
  const metrics = (await bed.get("/metrics")).text;
  expect(metrics).toContain('aido_pool_claims_total{image="host",isolation="container",result="hit"} 1');
  await bed.signal("SIGTERM");
  await bed.start();
  const { sandboxes } = (await bed.get("/api/sandbox")).json;
  expect(sandboxes.map(({ id }: { id: string }) => id)).toEqual([made.json.id]);
  // What a killed server has in its pool is the next server's to take: this one is asked to end.
  await bed.signal("SIGTERM");
});
