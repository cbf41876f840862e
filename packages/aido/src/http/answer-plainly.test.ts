import { createServer } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { listen } from "../../test/ports/proxy-bed.ts";
import { answerPlainly, asksForHttp2 } from "./answer-plainly.ts";

const ASKING = "connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n";

/** A server that tells what it was asked, and what it says to these pieces of one connection. */
async function answers(...pieces: string[]): Promise<string> {
  const server = createServer(async (request, response) => {
    const { method, url, headers } = request;
    response.end(`${method} ${url} ${headers["x-own"]} ${headers.upgrade} [${await text(request)}]`);
  });
  server.on("upgrade", (request, socket, head) => {
    if (asksForHttp2(request)) answerPlainly(server, request, socket, head);
    else socket.end("switched");
  });
  await using at = await listen(server);
  const socket = connect(at.port, "127.0.0.1");
  const heard = text(socket);
  for (const piece of pieces) await new Promise((resolve) => socket.write(piece, "latin1", resolve));
  return await heard;
}

test("a client that would like HTTP/2 is answered in HTTP/1.1, and its connection goes on", async () => {
  const get = `GET /a?b HTTP/1.1\r\nhost: x\r\nx-own: \xe9\r\n${ASKING}\r\n`;
  const heard = await answers(get, "GET /next HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
  expect(heard).toContain("GET /a?b \xe9 undefined []");
  expect(heard).toContain("GET /next undefined undefined []");
});

test("its body arrives, in one piece or in many", async () => {
  const post = (more: string) => `POST / HTTP/1.1\r\nhost: x\r\n${ASKING}${more}\r\n`;
  const last = "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
  expect(await answers(`${post("content-length: 5\r\n")}hello`, last)).toContain("[hello]");
  expect(await answers(post("content-length: 5\r\n"), "hel", "lo", last)).toContain("[hello]");
  const chunks = ["3\r\nhel\r\n", "2\r\nlo\r\n0\r\n\r\n"];
  expect(await answers(post("transfer-encoding: chunked\r\n"), ...chunks, last)).toContain("[hello]");
});

test("another protocol is not its business", async () => {
  expect(
    await answers("GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"),
  ).toBe("switched");
});
