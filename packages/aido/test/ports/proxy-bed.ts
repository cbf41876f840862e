import { createServer, type IncomingMessage, request as requestHttp, type Server } from "node:http";
import { type AddressInfo, connect, type createServer as createTcp, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { PortTokens } from "../../src/core/ports/port-tokens.ts";
import { portHost, portPath } from "../../src/http/proxy/port-address.ts";
import { PortProxy, type PortProxyOptions } from "../../src/http/proxy/port-proxy.ts";

const tokens = new PortTokens(new Uint8Array(32).fill(7));

type Handler = Parameters<typeof createServer>[1];

/** A program that listens on this machine, and the proxy before it. */
export async function proxyBed(handler: Handler, options: Partial<PortProxyOptions> = {}) {
  const insideServer = createServer(handler ?? (() => undefined));
  const inside = await listen(insideServer);
  const proxy = new PortProxy({
    dial: async (_, port) => dialTo(port),
    tokens,
    isDraining: () => false,
    ...options,
  });
  const outside = createServer((request, response) => {
    if (!proxy.handle(request, response)) response.writeHead(599).end();
  });
  outside.on("upgrade", (request, socket, head) => {
    proxy.upgrade(request, socket, head).catch(() => socket.destroy());
  });
  const server = await listen(outside);
  const token = tokens.issue("box", inside.port);
  const path = portPath("box", inside.port, token);
  const url = `http://127.0.0.1:${server.port}`;
  return {
    proxy,
    inside: insideServer,
    port: inside.port,
    proxyPort: server.port,
    path,
    url,
    host: portHost("box", inside.port, token, `127.0.0.1:${server.port}`) ?? "",
    byPath: (rest: string) => url + path + rest,
    byHost: (rest: string) => url + rest,
    async [Symbol.asyncDispose]() {
      proxy.close();
      await server[Symbol.asyncDispose]();
      await inside[Symbol.asyncDispose]();
    },
  };
}

export function dialTo(port: number): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => resolve(socket));
    socket.once("error", reject);
  });
}

export async function listen(server: Server | ReturnType<typeof createTcp>) {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Reply {
  status: number | undefined;
  headers: IncomingMessage["headers"];
  raw: readonly string[];
  text: string;
}

export function ask(
  url: string,
  { method = "GET", headers = {}, body = "" }: { method?: string; headers?: object; body?: string } = {},
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const request = requestHttp(url, { method, headers: { ...headers }, agent: false }, (reply) => {
      const chunks: Buffer[] = [];
      reply.on("data", (chunk: Buffer) => chunks.push(chunk));
      reply.on("error", reject);
      reply.on("end", () => {
        const { statusCode: status, rawHeaders: raw } = reply;
        resolve({ status, headers: reply.headers, raw, text: Buffer.concat(chunks).toString() });
      });
    });
    request.once("error", reject);
    request.end(body);
  });
}

export function once(
  emitter: { once(event: string, listener: (...values: unknown[]) => void): unknown },
  event: string,
  at = 0,
): Promise<unknown> {
  return new Promise((resolve) => emitter.once(event, (...values) => resolve(values[at])));
}

export function withResolvers<T>() {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((given) => {
    resolve = given;
  });
  return { promise, resolve };
}
