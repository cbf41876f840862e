import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runTool } from "./tools-harness.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "aido-prune-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const prune = (...paths: string[]) =>
  runTool(["prune", root, "."], { stdin: paths.map((path) => `${path}\0`).join("") });

test("prune removes files and the directories that become empty, and no others", async () => {
  mkdirSync(join(root, "a/b/c"), { recursive: true });
  mkdirSync(join(root, "kept"));
  writeFileSync(join(root, "a/b/c/one\n"), "");
  writeFileSync(join(root, "kept/other"), "");
  writeFileSync(join(root, "kept/gone"), "");
  expect(await prune("a/b/c/one\n", "kept/gone", "never/was")).toMatchObject({ status: 0, stderr: "" });
  expect(existsSync(join(root, "a"))).toBe(false);
  expect(existsSync(join(root, "kept/other"))).toBe(true);
  expect(existsSync(join(root, "kept/gone"))).toBe(false);
});

test("prune follows no link, in the middle or at the end", async () => {
  const outside = mkdtempSync(join(tmpdir(), "aido-prune-outside-"));
  try {
    writeFileSync(join(outside, "precious"), "x");
    symlinkSync(outside, join(root, "link"));
    symlinkSync(join(outside, "precious"), join(root, "file"));
    expect(await prune("link/precious", "file")).toMatchObject({ status: 0 });
    expect(existsSync(join(outside, "precious"))).toBe(true);
    expect(existsSync(join(root, "file"))).toBe(false);
  } finally {
    rmSync(outside, { recursive: true });
  }
});

test("prune refuses the root, and a last path that is cut off", async () => {
  writeFileSync(join(root, "a"), "");
  expect(await prune(".")).toMatchObject({ status: 1, stderr: expect.stringMatching(/^EBUSY/) });
  const cut = await runTool(["prune", root, "."], { stdin: "a" });
  expect(cut).toMatchObject({ status: 1, stderr: expect.stringMatching(/^EINVAL/) });
});

test("dial connects both ways and passes the end of input on", async () => {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("data", (chunk) => socket.write(chunk.toString().toUpperCase()));
    socket.on("end", () => socket.end("bye"));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const { port } = server.address() as AddressInfo;
    const { status, stdout } = await runTool(["dial", String(port)], { stdin: "hello " });
    expect(status).toBe(0);
    expect(stdout.toString()).toBe("\x01HELLO bye");
  } finally {
    server.close();
  }
});

test("dial to a port where nobody listens is ECONNREFUSED, and a bad port is refused", async () => {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  expect(await runTool(["dial", String(port)])).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^ECONNREFUSED/),
  });
  for (const bad of ["0", "65536", "x"]) {
    expect(await runTool(["dial", bad])).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^(EINVAL|ERANGE)/),
    });
  }
});
