import { createServer } from "node:http";
import { SidecarClient } from "@aido/sdk";
import { expect, test } from "vitest";
import { SidecarBed } from "../../../test/server/sidecar-bed.ts";
import { StreamLogger } from "../../log/stream-logger.ts";
import { SidecarPorts } from "./sidecar-ports.ts";

const logger = new StreamLogger({
  level: "silent",
  format: "json",
  write: () => undefined,
  now: () => new Date(),
});

function portsOf(
  bed: SidecarBed,
  options: { firstPort?: number; wanted?: () => Promise<readonly string[]> } = {},
) {
  const ports = new SidecarPorts({
    app: bed.api.app,
    firstPort: options.firstPort ?? 0,
    wanted: options.wanted ?? (async () => [bed.id]),
    logger,
    drainMs: 1_000,
  });
  return Object.assign(ports, { [Symbol.asyncDispose]: () => ports.close() });
}

test("S2-107 a sandbox's own port answers its sidecar API at the root, and below the usual path", async () => {
  await using bed = await SidecarBed.open();
  await using ports = portsOf(bed);
  await ports.start();
  const url = `http://127.0.0.1:${ports.portOf(bed.id)}`;
  for (const at of [url, `${url}/sidecar/${bed.id}`]) {
    const client = new SidecarClient({ url: at, token: bed.token });
    expect(await client.health()).toBe(true);
    expect((await client.exec({ command: "pwd" })).stdout).toBe("/home/agent\n");
  }
  const wrong = new SidecarClient({ url, token: "wrong" });
  await expect(wrong.exec({ command: "pwd" })).rejects.toMatchObject({ code: "FORBIDDEN" });
});

test("neither the API nor another sandbox is reached through it, however the path is written", async () => {
  await using bed = await SidecarBed.open();
  const other = await bed.api.post("/api/sandbox", { profile: "sidecar" });
  await using ports = portsOf(bed);
  await ports.start();
  const url = `http://127.0.0.1:${ports.portOf(bed.id)}`;
  const paths = [
    "/api/sandbox",
    "/../../api/sandbox",
    "/%2e%2e/%2e%2e/api/sandbox",
    "//api/sandbox",
    `/sidecar/${bed.id}/../../api/sandbox`,
    `/sidecar/${other.json.id}/agents`,
    `/../${other.json.id}/agents`,
    "/openapi.json",
  ];
  for (const path of paths) {
    const status = await raw(url, path, other.json.token);
    expect([path, status]).toEqual([path, expect.toBeOneOf([403, 404])]);
  }
});

test("ports are counted up from the first, past those that are taken, and given back", async () => {
  await using bed = await SidecarBed.open();
  const other = await bed.api.post("/api/sandbox", { profile: "sidecar" });
  const blocker = createServer();
  await new Promise<void>((resolve) => blocker.listen(0, "127.0.0.1", resolve));
  const address = blocker.address();
  const firstPort = typeof address === "object" && address !== null ? address.port : 0;
  await using ports = portsOf(bed, { firstPort, wanted: async () => [bed.id, other.json.id] });
  await ports.start();
  const [one = 0, two = 0] = [ports.portOf(bed.id), ports.portOf(other.json.id)];
  expect(one).toBeGreaterThan(firstPort);
  expect(two).toBeGreaterThan(one);
  await ports.open(bed.id);
  expect(ports.portOf(bed.id)).toBe(one);
  await ports.close();
  expect(ports.portOf(bed.id)).toBeUndefined();
  await expect(fetch(`http://127.0.0.1:${one}/health`)).rejects.toThrow();
  await new Promise((resolve) => blocker.close(resolve));
});

/** `fetch` would tidy the path up before it is sent. */
async function raw(url: string, path: string, token: string): Promise<number> {
  const { request } = await import("node:http");
  return new Promise((resolve, reject) => {
    const asking = request(`${url}/`, { path, headers: { authorization: `Bearer ${token}` } }, (reply) => {
      reply.resume();
      resolve(reply.statusCode ?? 0);
    });
    asking.on("error", reject);
    asking.end();
  });
}
