import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { Aido, Execs } from "@aido/sdk";
import { describe, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { ApiBed } from "../../../test/server/api-bed.ts";
import { serveExecSocket } from "./exec-socket.ts";

const MIB = 1024 * 1024;

/** Counts what is on its way to a command. */
function watched(aido: Aido): { aido: Aido; writes: { begun: number; waiting: number } } {
  const writes = { begun: 0, waiting: 0 };
  const writeStdin: Execs["writeStdin"] = async (...asked) => {
    writes.begun += 1;
    writes.waiting += 1;
    await aido.execs.writeStdin(...asked).finally(() => {
      writes.waiting -= 1;
    });
  };
  const execs = new Proxy(aido.execs, {
    get: (target, name) => (name === "writeStdin" ? writeStdin : Reflect.get(target, name).bind(target)),
  });
  return { aido: { execs } as Aido, writes };
}

/** A client and the server's end of its socket, on the command. */
async function connected(bed: ApiBed, sandboxId: string, execId: string) {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  const connection = once(server, "connection") as Promise<[WebSocket]>;
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  client.on("error", () => undefined);
  await once(client, "open");
  const [socket] = await connection;
  const { aido, writes } = watched(bed.aido);
  const exec = await bed.aido.execs.get(sandboxId, execId);
  const served = serveExecSocket(socket, { aido, exec, range: {}, pingMs: 200, onSignal: (send) => send() });
  const close = async () => {
    client.terminate();
    await served;
    server.close();
  };
  return { client, socket, writes, served, [Symbol.asyncDispose]: close };
}

describe("input over a WebSocket", () => {
  test("a client is not read from while its command does not read, and leaving lets go of what it sent", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    const { json } = await bed.exec(id, ["sleep", "600"], { background: true, stdin: true });
    await using viewer = await connected(bed, id, json.id);
    const { client, socket, writes } = viewer;
    for (let sent = 0; sent < 64; sent += 1) client.send(Buffer.alloc(MIB));
    await expect.poll(() => socket.isPaused).toBe(true);
    expect(writes).toEqual({ begun: 1, waiting: 1 });
    // The rest is the client's own to hold, or the network's.
    expect(client.bufferedAmount).toBeGreaterThan(32 * MIB);
    client.terminate();
    await viewer.served;
    await expect.poll(() => writes, { timeout: 10_000 }).toEqual({ begun: 1, waiting: 0 });
    expect((await bed.get(`/api/sandbox/${id}/exec/${json.id}`)).json.status).toBe("running");
  });

  test("a client that comes while another's input waits, and leaves, leaves nothing behind", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    const { json } = await bed.exec(id, ["sleep", "600"], { background: true, stdin: true });
    await using staying = await connected(bed, id, json.id);
    staying.client.send(Buffer.alloc(MIB));
    await expect.poll(() => staying.writes.waiting).toBe(1);
    await using leaving = await connected(bed, id, json.id);
    leaving.client.send(Buffer.alloc(MIB));
    await expect.poll(() => leaving.writes.waiting).toBe(1);
    leaving.client.terminate();
    await expect.poll(() => leaving.writes.waiting, { timeout: 10_000 }).toBe(0);
    expect(staying.writes.waiting).toBe(1);
  });

  test("what a client sent before it left is given to a command that reads, all of it and in order", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    const { json } = await bed.exec(id, ["cat"], { background: true, stdin: true });
    await using viewer = await connected(bed, id, json.id);
    const lines = Array.from({ length: 200 }, (_, at) => `line ${at}\n`);
    for (const line of lines) viewer.client.send(JSON.stringify({ type: "stdin", data: line }));
    viewer.client.send(JSON.stringify({ type: "closeStdin" }));
    viewer.client.close();
    const ended = await bed.get(`/api/sandbox/${id}/exec/${json.id}?wait=10000`);
    expect(ended.json).toMatchObject({ status: "success", stdout: lines.join("") });
  });
});
