import { type ChildProcessWithoutNullStreams, execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { afterEach, expect, test } from "vitest";
import {
  freshDirectory,
  nextOutput,
  plainUser,
  runTool,
  startTool,
  type ToolOptions,
} from "./tools-harness.ts";

const TOKEN = "a-token-of-some-length";
const ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret";
const REQUEST = `GET / HTTP/1.1\r\nHost: x\r\nAuthorization: ${TOKEN}\r\n\r\n`;
const started: ChildProcessWithoutNullStreams[] = [];

afterEach(async () => {
  for (const tool of started.splice(0)) {
    if (tool.exitCode !== null || tool.signalCode !== null) continue;
    tool.kill("SIGKILL");
    await once(tool, "close");
  }
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

async function offer(
  port: number,
  { answer = ANSWER, seconds = 60, ...options }: { answer?: string; seconds?: number } & ToolOptions = {},
): Promise<ChildProcessWithoutNullStreams> {
  const tool = startTool(["offer", String(port), String(seconds)], options);
  started.push(tool);
  tool.stdin.end(`${TOKEN}\n${answer}`);
  expect(await nextOutput(tool)).toEqual(Buffer.from([1]));
  return tool;
}

async function ask(port: number, ...parts: readonly string[]): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let answer = "";
  socket.on("data", (chunk) => {
    answer += chunk.toString();
  });
  // What is hung up on in the middle of its words is reset, and has no answer.
  socket.on("error", () => undefined);
  const closed = new Promise((resolve) => socket.once("close", resolve));
  for (const part of parts) await new Promise<void>((resolve) => socket.write(part, () => resolve()));
  await closed;
  return answer;
}

test("offer answers whoever says the token, in any of the ways it may be written", async () => {
  const port = await freePort();
  await offer(port);
  expect(await ask(port, REQUEST)).toBe(ANSWER);
  expect(await ask(port, `GET /any/path HTTP/1.1\r\naUTHORIZATION:${TOKEN}\r\nx: y\r\n\r\n`)).toBe(ANSWER);
  expect(await ask(port, REQUEST.slice(0, 20), REQUEST.slice(20, 50), REQUEST.slice(50))).toBe(ANSWER);
  expect(await Promise.all(Array.from({ length: 20 }, () => ask(port, REQUEST)))).toEqual(
    Array.from({ length: 20 }, () => ANSWER),
  );
});

test.each([
  ["no token", "GET / HTTP/1.1\r\n\r\n"],
  ["another token", REQUEST.replace(TOKEN, `${TOKEN.slice(0, -1)}x`)],
  ["the beginning of the token", REQUEST.replace(TOKEN, TOKEN.slice(0, -1))],
  ["more than the token", REQUEST.replace(TOKEN, `${TOKEN}x`)],
  ["an empty token", REQUEST.replace(TOKEN, "")],
  ["the token under another name", REQUEST.replace("Authorization", "X-Authorization")],
  ["the token in the path", `GET /Authorization:${TOKEN} HTTP/1.1\r\n\r\n`],
  ["a wrong token before the right one", REQUEST.replace("Host: x", "Authorization: no")],
  ["another method", REQUEST.replace("GET", "PUT")],
  ["a NUL before the token", REQUEST.replace("Host: x", "Host: \0")],
  ["no HTTP at all", "\r\n\r\n\r\n"],
  ["nothing but ends of lines", "\n".repeat(8000)],
  ["a head that is too long", `GET / HTTP/1.1\r\nx: ${"x".repeat(9000)}\r\nAuthorization: ${TOKEN}\r\n\r\n`],
])("offer tells nothing to %s", async (_what, request) => {
  const port = await freePort();
  await offer(port);
  expect(await ask(port, request)).toMatch(/^(HTTP\/1\.1 403 |$)/);
  expect(await ask(port, REQUEST)).toBe(ANSWER);
});

test("offer waits for nobody longer than some seconds, and goes on when one hangs up", async () => {
  const port = await freePort();
  await offer(port);
  const silent = connect(port, "127.0.0.1");
  await once(silent, "connect");
  expect(await ask(port, REQUEST)).toBe(ANSWER);
  silent.destroy();
  const rude = connect(port, "127.0.0.1");
  await once(rude, "connect");
  rude.resetAndDestroy();
  expect(await ask(port, REQUEST)).toBe(ANSWER);
});

test("offer has nothing to give when its time is over", async () => {
  const port = await freePort();
  await offer(port, { seconds: 0 });
  expect(await ask(port, REQUEST)).toMatch(/^HTTP\/1\.1 503 /);
  expect(await ask(port, "GET / HTTP/1.1\r\n\r\n")).toMatch(/^HTTP\/1\.1 403 /);
});

test("the next offer takes the same port before the first one ends", async () => {
  const port = await freePort();
  const first = await offer(port);
  await offer(port, { answer: "HTTP/1.1 200 OK\r\n\r\nnewer" });
  first.kill("SIGKILL");
  await once(first, "close");
  expect(await ask(port, REQUEST)).toContain("newer");
});

test("offer refuses a port that is taken, and input without a token or beyond its bound", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const port = (server.address() as AddressInfo).port;
  try {
    const refused = (stdin: string, at = port) => runTool(["offer", String(at), "60"], { stdin });
    expect(await refused(`${TOKEN}\n${ANSWER}`)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^EADDRINUSE/),
    });
    const free = await freePort();
    for (const stdin of ["", "no line", "\nno token", `${TOKEN}\n${"x".repeat(16_384)}`]) {
      expect(await refused(stdin, free), JSON.stringify(stdin.slice(0, 20))).toMatchObject({
        status: 1,
        stderr: expect.stringMatching(/^EINVAL/),
      });
    }
    expect(await refused(`${TOKEN}\n${ANSWER}`, 0)).toMatchObject({ status: 1 });
  } finally {
    server.close();
  }
});

test.skipIf(process.getuid?.() !== 0)(
  "what is offered can be read by no other process of the same user",
  async () => {
    await using directory = await freshDirectory();
    const user = await plainUser(directory.path);
    const tool = await offer(await freePort(), user);
    const secret = `/proc/${tool.pid}`;
    for (const name of ["mem", "environ", "maps", "fd/0"]) {
      expect(
        () => execFileSync("cat", [`${secret}/${name}`], { uid: 65_534, gid: 65_534, stdio: "pipe" }),
        name,
      ).toThrow(/Permission denied/);
    }
    expect(readFileSync(`${secret}/cmdline`, "latin1")).not.toContain(TOKEN);
  },
);
