import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { isAidoError } from "@aido/sdk/protocol";
import { afterEach, beforeEach, expect, test } from "vitest";
import { connectSocket } from "./connect-socket.ts";

let directory: string;
let server: Server;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "aido-socket-"));
  server = createServer((socket) => socket.end("hello"));
  await new Promise<void>((resolve) => server.listen(join(directory, "real.sock"), resolve));
});

afterEach(async () => {
  await new Promise((resolve) => server.close(resolve));
  await rm(directory, { recursive: true });
});

test("a socket is connected to", async () => {
  expect(await text(await connectSocket(join(directory, "real.sock")))).toBe("hello");
});

test("a path longer than a socket address may be is no obstacle", async () => {
  const deep = join(directory, "d".repeat(100), "e".repeat(100));
  await mkdir(deep, { recursive: true });
  await symlink(directory, join(deep, "back"));
  expect(await text(await connectSocket(join(deep, "back", "real.sock")))).toBe("hello");
});

test("a link in the socket's place is not followed, a file is not opened", async () => {
  await symlink("real.sock", join(directory, "link.sock"));
  await writeFile(join(directory, "file.sock"), "");
  for (const name of ["link.sock", "file.sock"]) {
    await expect(connectSocket(join(directory, name))).rejects.toSatisfy((error) =>
      isAidoError(error, "CONTAINER_LOST"),
    );
  }
});

test("a missing socket is ENOENT, an aborted signal is its reason", async () => {
  await expect(connectSocket(join(directory, "none.sock"))).rejects.toMatchObject({ code: "ENOENT" });
  const reason = new Error("enough");
  await expect(connectSocket(join(directory, "real.sock"), AbortSignal.abort(reason))).rejects.toBe(reason);
});

test("a listener that dies before it accepts breaks the connection, not the process", async () => {
  const path = join(directory, "dying.sock");
  // Python listens without accepting; its end resets whoever waits.
  const program = `import socket, sys, os
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(8); print("up", flush=True); sys.stdin.read(1); os._exit(0)`;
  const listener = spawn("python3", ["-c", program, path], { stdio: ["pipe", "pipe", "inherit"] });
  await once(listener.stdout, "data");
  const socket = await connectSocket(path);
  listener.stdin.end();
  await once(listener, "exit");
  await expect.poll(() => socket.destroyed).toBe(true);
});
