import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { ServerBed, until } from "./server-bed.ts";

/** Answers HTTP, and switches to another protocol when asked to. */
const PROGRAM = `
const server = require("node:http").createServer((request, response) => response.end("inside"));
server.on("upgrade", (request, socket) => socket.end(
  "HTTP/1.1 101 Switching Protocols\\r\\nconnection: upgrade\\r\\nupgrade: websocket\\r\\n\\r\\n"));
server.listen(8000);`;

test("S3-45 SSH logins, what is begun with them, and what comes in by a port's address are in the audit log", async () => {
  await using bed = await ServerBed.start({ driver: "local", env: { SIDECAR_SSH_PORT: "0" } });
  const id = await bed.sandbox();
  const of = async (operation: string) =>
    (await bed.get(`/api/audit?sandbox=${id}&limit=100`)).json.entries.filter(
      (entry: { operation: string }) => entry.operation === operation,
    );

  const key = join(bed.directory, "id");
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "me", "-f", key]);
  const publicKey = readFileSync(`${key}.pub`, "utf8");
  expect((await bed.post(`/api/sandbox/${id}/ssh-keys`, { publicKey })).status).toBe(200);
  const ran = await bed.aido("ssh", "-i", key, id, "--", "echo hello");
  expect(ran, ran.stderr).toMatchObject({ code: 0, stdout: "hello\n" });
  const [, fingerprint] = execFileSync("ssh-keygen", ["-l", "-f", key], { encoding: "utf8" }).split(" ");
  const caller = { owner: `ssh:${fingerprint}`, sandbox: id, status: 200 };
  expect(await of("sshLogin")).toMatchObject([caller]);
  expect(await of("sshExec")).toMatchObject([caller]);

  await bed.exec(id, [process.execPath, "-e", PROGRAM], { background: true });
  const { url } = (await bed.post(`/api/sandbox/${id}/ports/8000`, {})).json;
  await until("it listens", async () => (await fetch(url)).status === 200);
  for (let asked = 0; asked < 3; asked += 1) await fetch(url);
  const socket = new WebSocket(url.replace("http:", "ws:"));
  await once(socket, "error");
  expect((await fetch(url.replace(/\/[a-z2-7]{26}/, `/${"a".repeat(26)}`))).status).toBe(404);
  const entries = await of("proxyPort");
  const port = { owner: `port:${id}:8000`, name: "port 8000", sandbox: id };
  expect(entries.filter(({ status }: { status: number }) => status === 200)).toMatchObject([port]);
  expect(entries.filter(({ status }: { status: number }) => status === 101)).toMatchObject([port]);
  expect(entries.filter(({ status }: { status: number }) => status === 404)).toEqual([]);
});
