import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { CoreAido } from "../../src/core/core-aido.ts";
import { PortTokens } from "../../src/core/ports/port-tokens.ts";
import { portPath } from "../../src/http/proxy/port-address.ts";
import { PortProxy } from "../../src/http/proxy/port-proxy.ts";
import { type AidoUnderTest, openPlace, output } from "../contract/aido-contract.ts";

/** Serves the files of its directory; smaller than what some images call Python can import. */
const FILE_SERVER = `
import _thread, os, socket
server = socket.create_server(("127.0.0.1", 8080), backlog=64)
def answer(peer):
    head = b""
    while b"\\r\\n\\r\\n" not in head: head += peer.recv(4096)
    name = head.split(b" ")[1].decode()[1:] or "index.html"
    found = os.path.exists(name)
    body = open(name, "rb").read() if found else b"no such file"
    status = "200 OK" if found else "404 Not Found"
    peer.sendall(f"HTTP/1.1 {status}\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n".encode() + body)
    peer.close()
while True: _thread.start_new_thread(answer, (server.accept()[0],))
`;

/** Echoes frames; the handshake and the framing by hand, with nothing but what every Python has. */
const WEBSOCKET_ECHO = `
import base64, hashlib, socket
server = socket.create_server(("127.0.0.1", 8081))
def exact(peer, count):
    data = b""
    while len(data) < count: data += peer.recv(count - len(data))
    return data
while True:
    peer, _ = server.accept()
    head = b""
    while b"\\r\\n\\r\\n" not in head: head += peer.recv(1)
    key = [l.split(b": ")[1] for l in head.split(b"\\r\\n") if l.lower().startswith(b"sec-websocket-key")][0]
    accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    peer.sendall(b"HTTP/1.1 101 Switching\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: " + accept + b"\\r\\n\\r\\n")
    while True:
        first, length = exact(peer, 2)
        length &= 127
        mask = exact(peer, 4)
        body = bytes(b ^ mask[i % 4] for i, b in enumerate(exact(peer, length)))
        peer.sendall(bytes([first, length]) + body)
        if first & 15 == 8: break
    peer.close()
`;

/** Ports of sandboxes that have no network at all, reached through their supervisor. */
export function portsContract(under: AidoUnderTest): void {
  describe(`ports of a sandbox, with the ${under.driver} driver`, () => {
    test("a web server inside is reached over HTTP, large files and many requests at once too", async () => {
      await using bed = await portsBed(under);
      await output(bed.aido, bed.id, [
        "sh",
        "-c",
        "echo hello > index.html; head -c 20000000 /dev/urandom > big",
      ]);
      await bed.aido.execs.start(bed.id, { argv: ["python3", "-c", FILE_SERVER] });
      await bed.answers(8080);
      expect(await (await fetch(bed.url(8080))).text()).toBe("hello\n");
      const inside = await output(bed.aido, bed.id, ["sha256sum", "big"]);
      const big = Buffer.from(await (await fetch(`${bed.url(8080)}big`)).arrayBuffer());
      expect(big.length).toBe(20_000_000);
      const { createHash } = await import("node:crypto");
      expect(inside.slice(0, 64)).toBe(createHash("sha256").update(big).digest("hex"));
      const many = await Promise.all(
        Array.from({ length: 40 }, async () => (await fetch(bed.url(8080))).text()),
      );
      expect(new Set(many)).toEqual(new Set(["hello\n"]));
      expect((await fetch(`${bed.url(8080)}missing`)).status).toBe(404);
    });

    test("a WebSocket inside is reached", async () => {
      await using bed = await portsBed(under);
      await bed.aido.execs.start(bed.id, { argv: ["python3", "-c", WEBSOCKET_ECHO] });
      await bed.listens(8081);
      const client = new WebSocket(bed.url(8081).replace("http", "ws"));
      const said = new Promise<string>((resolve) => client.once("message", (data) => resolve(String(data))));
      await new Promise((resolve) => client.once("open", resolve));
      client.send("over the wall");
      expect(await said).toBe("over the wall");
      const closed = new Promise((resolve) => client.once("close", resolve));
      client.close();
      await closed;
    });

    test("nothing that listens, a stopped and a destroyed sandbox are told apart", async () => {
      await using bed = await portsBed(under);
      const code = async () => {
        const reply = await fetch(bed.url(9));
        return [reply.status, ((await reply.json()) as { error: { code: string } }).error.code];
      };
      expect(await code()).toEqual([502, "PORT_UNREACHABLE"]);
      await bed.aido.sandboxes.stop(bed.id);
      expect(await code()).toEqual([409, "CONTAINER_NOT_RUNNING"]);
      await bed.aido.sandboxes.destroy(bed.id);
      expect(await code()).toEqual([404, "CONTAINER_NOT_FOUND"]);
    });

    test("a connection that the client ends leaves nothing running inside", async () => {
      await using bed = await portsBed(under);
      const sink =
        'import socket,time\\ns=socket.create_server(("127.0.0.1",8082))\\nk=[]\\nwhile 1: k.append(s.accept())';
      await bed.aido.execs.start(bed.id, { argv: ["python3", "-c", sink.replaceAll("\\n", "\n")] });
      await bed.listens(8082);
      const processes = (count: number) =>
        expect
          .poll(async () => (await bed.aido.sandboxes.stats(bed.id)).pids, { timeout: 20_000 })
          .toBe(count);
      // The supervisor and what waits for its next command, the program and what keeps it; the command that has just
      // looked may still be on its way out.
      await processes(4);
      const leaving = new AbortController();
      const asked = fetch(bed.url(8082), { signal: leaving.signal });
      asked.catch(() => undefined);
      await processes(5);
      leaving.abort();
      await expect(asked).rejects.toThrow();
      await processes(4);
    });

    test("the end of what the client sends is passed on, and the answer after it comes back", async () => {
      await using bed = await portsBed(under);
      const count =
        'import socket\ns=socket.create_server(("127.0.0.1",8083))\nwhile 1:\n p,_=s.accept()\n n=0\n while b:=p.recv(65536): n+=len(b)\n p.sendall(str(n).encode())\n p.close()';
      await bed.aido.execs.start(bed.id, { argv: ["python3", "-c", count] });
      await bed.listens(8083);
      const stream = await bed.aido.ports.dial(bed.id, 8083);
      for (let at = 0; at < 64; at += 1) {
        if (!stream.write(Buffer.alloc(65_536)))
          await new Promise((resolve) => stream.once("drain", resolve));
      }
      stream.end();
      expect(String(await buffer(stream))).toBe(String(64 * 65_536));
    });
  });
}

async function portsBed(under: AidoUnderTest) {
  const place = openPlace(under);
  const aido = await place.open();
  // Without the watch that a history keeps inside.
  const { id } = await aido.sandboxes.create({ ttlMs: 120_000, network: "none", history: false });
  const tokens = new PortTokens(new Uint8Array(32).fill(9));
  const dial = (sandboxId: string, port: number, signal: AbortSignal) =>
    aido.ports.dial(sandboxId, port, signal);
  const proxy = new PortProxy({ dial, tokens, isDraining: () => false });
  const server = createServer((request, response) => {
    if (!proxy.handle(request, response)) response.writeHead(599).end();
  });
  server.on("upgrade", (request, socket, head) => {
    proxy.upgrade(request, socket, head).catch(() => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const url = (port: number) => base + portPath(id, port, tokens.issue(id, port));
  return {
    aido,
    id,
    url,
    answers: (port: number) =>
      expect.poll(async () => (await fetch(url(port))).status, { timeout: 30_000 }).toBe(200),
    listens: (port: number) => expect.poll(() => listens(aido, id, port), { timeout: 30_000 }).toBe(true),
    async [Symbol.asyncDispose]() {
      proxy.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await place[Symbol.asyncDispose]();
    },
  };
}

/** Read from the kernel's table, so that nothing is connected. */
async function listens(aido: CoreAido, id: string, port: number): Promise<boolean> {
  const table = await output(aido, id, ["cat", "/proc/net/tcp"]);
  return table.includes(`:${port.toString(16).toUpperCase().padStart(4, "0")} 00000000:0000 0A`);
}
