import { type IncomingMessage, request as requestHttp } from "node:http";
import { connect, createServer as createTcp, type Socket } from "node:net";
import { AidoError } from "@aido/sdk/protocol";
import { describe, expect, test } from "vitest";
import { ask, dialTo, listen, proxyBed, withResolvers } from "../../../test/ports/proxy-bed.ts";

describe("a request to a port", () => {
  test("reaches the program with method, path, headers and body, and its answer comes back", async () => {
    await using bed = await proxyBed((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const { method, url, headers } = request;
        const body = Buffer.concat(chunks).toString();
        response.writeHead(207, { "x-two": ["a", "b"], "content-type": "application/json" });
        response.end(JSON.stringify({ method, url, headers, body }));
      });
    });
    const reply = await ask(bed.byPath("a/b?c=d"), {
      method: "PUT",
      body: "hello",
      headers: { "x-own": "1" },
    });
    expect(reply.status).toBe(207);
    expect(reply.raw.filter((name) => name === "x-two")).toHaveLength(2);
    const seen = JSON.parse(reply.text) as { headers: Record<string, string> };
    expect(seen).toMatchObject({ method: "PUT", url: "/a/b?c=d", body: "hello" });
    expect(seen.headers).toMatchObject({
      host: `localhost:${bed.port}`,
      "x-own": "1",
      "x-forwarded-prefix": bed.path.slice(0, -1),
    });
  });

  test("tells the program nothing that is meant for aido or for one connection only", async () => {
    await using bed = await proxyBed((request, response) => response.end(JSON.stringify(request.rawHeaders)));
    const headers = {
      authorization: "Bearer aido_secret",
      "x-api-key": "aido_secret",
      "proxy-authorization": "Basic aido_secret",
      cookie: "aido_session=aido_secret; other=1",
      "x-forwarded-for": "6.6.6.6",
      "x-forwarded-host": "evil",
      "x-hop": "aido_secret",
      te: "trailers",
      connection: "keep-alive, x-hop, content-length",
      "aido-forward-authorization": "Bearer theirs",
    };
    const byPath = await ask(bed.byPath(""), { headers });
    expect(byPath.text).not.toContain("aido_secret");
    expect(byPath.text).not.toContain("evil");
    expect(byPath.text).not.toContain("other=1");
    expect(byPath.text).not.toMatch(/6\.6\.6\.6|trailers|keep-alive/);
    expect(JSON.parse(byPath.text)).toEqual(expect.arrayContaining(["Authorization", "Bearer theirs"]));
    const byHost = await ask(bed.byHost("/"), { headers: { ...headers, host: bed.host } });
    expect(byHost.text).not.toContain("aido_secret");
    expect(byHost.text).toContain("other=1");
  });

  test("by path its pages get an origin of their own, no cookies, and redirects stay below the path", async () => {
    await using bed = await proxyBed((request, response) => {
      const location = request.url === "/abs" ? `http://localhost:${bed.port}/next` : "/next";
      response.writeHead(302, { location, "set-cookie": "a=b", "service-worker-allowed": "/" }).end();
    });
    const shared = await ask(bed.byPath("rel"));
    expect(shared).toMatchObject({ status: 302, headers: { location: `${bed.path}next` } });
    expect((await ask(bed.byPath("abs"))).headers["location"]).toBe(`${bed.path}next`);
    expect(shared.headers["set-cookie"]).toBeUndefined();
    expect(shared.headers["service-worker-allowed"]).toBeUndefined();
    expect(shared.headers["content-security-policy"]).toMatch(/^sandbox (?!.*allow-same-origin)/);
    const own = await ask(bed.byHost("/"), { headers: { host: bed.host } });
    expect(own.headers).toMatchObject({ location: "/next", "set-cookie": ["a=b"] });
    expect(own.headers["content-security-policy"]).toBeUndefined();
  });

  test("a page that shares aido's origin says nothing about it, and its own host's cookies stay with that host", async () => {
    const ofOrigin = {
      "strict-transport-security": "max-age=99",
      "clear-site-data": '"*"',
      "alt-svc": 'h2="evil.example:443"',
      "reporting-endpoints": 'default="https://evil.example"',
      "report-to": "{}",
      nel: "{}",
    };
    await using bed = await proxyBed((_, response) => {
      const cookies = ["a=domain=b; Path=/; domain = .localhost; HttpOnly", "c=d"];
      response.writeHead(200, { ...ofOrigin, "set-cookie": cookies, "x-own": "1" }).end();
    });
    const shared = await ask(bed.byPath(""));
    expect(shared.headers["x-own"]).toBe("1");
    for (const name of Object.keys(ofOrigin)) expect(shared.headers[name]).toBeUndefined();
    const own = await ask(bed.byHost("/"), { headers: { host: bed.host } });
    expect(own.headers).toMatchObject(ofOrigin);
    expect(own.headers["set-cookie"]).toEqual(["a=domain=b; Path=/; HttpOnly", "c=d"]);
  });

  test("without its last slash is sent on, so that the page's relative links lead somewhere", async () => {
    await using bed = await proxyBed((_, response) => response.end());
    const reply = await ask(bed.url + bed.path.slice(0, -1));
    expect(reply).toMatchObject({ status: 308, headers: { location: bed.path } });
  });

  test("with a wrong token, port or sandbox is answered alike and reaches nothing", async () => {
    let reached = 0;
    await using bed = await proxyBed((_, response) => {
      reached += 1;
      response.end();
    });
    const wrong = [
      bed.path.replace(/[a-z2-7]{26}/, "a".repeat(26)),
      bed.path.replace(`/${bed.port}/`, "/1/"),
      bed.path.replace("/box/", "/other/"),
    ];
    const replies = await Promise.all(wrong.map((path) => ask(bed.url + path)));
    const codes = replies.map(({ status, text }) => [status, (JSON.parse(text) as ErrorReply).error.code]);
    expect(codes).toEqual(wrong.map(() => [404, "RESOURCE_NOT_FOUND"]));
    expect(reached).toBe(0);
  });

  test("bodies of unknown length are passed on both ways as they come, with any method", async () => {
    await using bed = await proxyBed((request, response) => request.pipe(response));
    for (const method of ["POST", "GET", "DELETE"]) {
      const echo = requestHttp(bed.byPath(""), { method, headers: { "transfer-encoding": "chunked" } });
      const answered = new Promise<IncomingMessage>((resolve) => echo.once("response", resolve));
      echo.write("first");
      const chunks = (await answered)[Symbol.asyncIterator]();
      // The answer to the first part arrives although the second is not sent yet.
      expect(String((await chunks.next()).value)).toBe("first");
      echo.end("GET /smuggled HTTP/1.1\r\n\r\n");
      expect(String((await chunks.next()).value)).toBe("GET /smuggled HTTP/1.1\r\n\r\n");
      expect((await chunks.next()).done).toBe(true);
    }
  });

  test("a client that reads slowly holds up the program, not memory", async () => {
    let written = 0;
    await using bed = await proxyBed((_, response) => {
      const chunk = Buffer.alloc(64 * 1024);
      const more = () => {
        do written += chunk.length;
        while (written < 256 * 1024 * 1024 && response.write(chunk));
        response.once("drain", more);
      };
      more();
    });
    const socket = connect(bed.proxyPort, "127.0.0.1");
    socket.pause();
    socket.write(`GET ${bed.path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    let before = -1;
    await expect
      .poll(
        () => {
          const isSame = written === before && written > 0;
          before = written;
          return isSame;
        },
        { interval: 300, timeout: 15_000 },
      )
      .toBe(true);
    expect(written).toBeLessThan(64 * 1024 * 1024);
    socket.destroy();
  });

  test("ends inside when the client goes away", async () => {
    const ended = withResolvers<void>();
    await using bed = await proxyBed((request, response) => {
      request.socket.once("close", ended.resolve);
      response.write("begun");
    });
    const client = requestHttp(bed.byPath(""));
    client.once("error", () => undefined);
    client.once("response", () => client.destroy());
    client.end();
    await ended.promise;
  });
});

const CHUNKED = "transfer-encoding: chunked\r\n\r\n9\r\nabHTTP/1.\r\n0\r\n\r\n";

describe("what listens on a port", () => {
  test("and is not there gives 502 with a code", async () => {
    await using bed = await proxyBed(() => undefined, {
      dial: async () => {
        throw new AidoError("PORT_UNREACHABLE", "Nothing answers");
      },
    });
    const reply = await ask(bed.byPath(""));
    expect(reply.status).toBe(502);
    expect(JSON.parse(reply.text)).toMatchObject({ error: { code: "PORT_UNREACHABLE" } });
  });

  test.each([
    ["hangs up without a word", ""],
    ["speaks another protocol", "SSH-2.0-OpenSSH_9\r\n"],
    ["sends endless headers", `HTTP/1.1 200 OK\r\nx: ${"y".repeat(100_000)}\r\n\r\n`],
    ["splits its headers", "HTTP/1.1 200 OK\r\nx: a\rset-cookie: b\r\n\r\n"],
    ["says two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"],
    ["says a length and chunks", `HTTP/1.1 200 OK\r\ncontent-length: 1\r\n${CHUNKED}`],
    ["switches protocols unasked", "HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"],
    ["pretends to switch protocols", "HTTP/1.1 101 Switching\r\ncontent-length: 0\r\n\r\n"],
    ["has a status that is none", "HTTP/1.1 099 What\r\ncontent-length: 0\r\n\r\n"],
  ])("and %s gives 502 with a code", async (_, answer) => {
    await using inside = await listen(createTcp((socket) => void socket.on("error", () => 0).end(answer)));
    await using bed = await proxyBed(() => undefined, { dial: async () => dialTo(inside.port) });
    const reply = await ask(bed.byPath(""));
    expect(reply.status).toBe(502);
    expect(JSON.parse(reply.text)).toMatchObject({ error: { code: "PORT_UNREACHABLE" } });
  });

  test("and promises an answer without end is given up", async () => {
    const promise = "HTTP/1.1 103 Soon\r\nlink: </a>\r\n\r\n".repeat(100);
    const goOn = (socket: Socket) => void (socket.write(promise) && setImmediate(() => goOn(socket)));
    const server = createTcp((socket) => goOn(socket.on("error", () => 0).on("drain", () => goOn(socket))));
    await using inside = await listen(server);
    await using bed = await proxyBed(() => undefined, { dial: async () => dialTo(inside.port) });
    expect((await ask(bed.byPath(""))).status).toBe(502);
  });

  test("and says a length where no body can be is passed on without it", async () => {
    const answer = "HTTP/1.1 204 None\r\ncontent-length: 9\r\nx-own: 1\r\n\r\nHTTP/1.1 ";
    await using inside = await listen(createTcp((socket) => void socket.on("error", () => 0).end(answer)));
    await using bed = await proxyBed(() => undefined, { dial: async () => dialTo(inside.port) });
    const { status, headers } = await ask(bed.byPath(""));
    expect([status, headers["x-own"], headers["content-length"]]).toEqual([204, "1", undefined]);
  });

  test("and breaks off in the middle of its answer breaks off the client's answer too", async () => {
    const half = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf";
    await using inside = await listen(createTcp((socket) => void socket.on("error", () => 0).end(half)));
    await using bed = await proxyBed(() => undefined, { dial: async () => dialTo(inside.port) });
    await expect(ask(bed.byPath(""))).rejects.toThrow(/aborted|ECONNRESET|hang up/);
  });

  test("and never answers is given up", async () => {
    await using bed = await proxyBed(() => undefined, { idleMs: 50 });
    const reply = await ask(bed.byPath(""));
    expect(reply.status).toBe(504);
    expect(JSON.parse(reply.text)).toMatchObject({ error: { code: "DEADLINE_EXCEEDED" } });
  });
});

interface ErrorReply {
  error: { code: string };
}
