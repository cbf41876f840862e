import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { ServerBed } from "./server-bed.ts";

/** All that the server says to a client that sends this and then nothing, until it closes the connection. */
async function halfSent(bed: ServerBed, text: string): Promise<string> {
  const { hostname, port } = new URL(bed.url);
  const socket = connect(Number(port), hostname);
  let answer = "";
  socket.on("data", (data) => {
    answer += data.toString();
  });
  socket.write(text);
  await once(socket, "end");
  socket.destroy();
  return answer;
}

test("S3-49 a client that stays but never finishes its body is told so, and cut off", async () => {
  await using bed = await ServerBed.start({
    driver: "local",
    env: { AIDO_SERVE_BODY_IDLE_TIMEOUT: "300ms" },
  });
  const id = await bed.sandbox();
  const head = (method: string, path: string, more: string) =>
    `${method} ${path} HTTP/1.1\r\nhost: localhost\r\n${more}\r\n`;
  const json = "content-type: application/json\r\ncontent-length: 500\r\n";
  const chunked = "transfer-encoding: chunked\r\n";
  const requests = [
    `${head("POST", "/api/sandbox", json)}{"image":`,
    `${head("POST", "/api/sandbox/exec", json)}`,
    `${head("PUT", `/api/sandbox/${id}/files?path=half`, chunked)}5\r\nhello\r\n`,
  ];
  for (const request of requests) {
    const answer = await halfSent(bed, request);
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(answer.toLowerCase()).toContain("\r\nconnection: close\r\n");
    const body = answer.slice(answer.indexOf("{"), answer.lastIndexOf("}") + 1);
    expect(JSON.parse(body).error).toMatchObject({
      code: "REQUEST_TIMEOUT",
      message: expect.stringContaining("300 ms"),
      details: { cause: expect.any(String) },
    });
  }
  // Nothing half-written is left, and the server goes on.
  expect((await bed.sh(id, "ls")).json.stdout).not.toContain("half");
  expect((await bed.get("/api/sandbox")).json.sandboxes).toHaveLength(1);
});
