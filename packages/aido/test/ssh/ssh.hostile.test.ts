import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { loadSshLibrary } from "../../src/ssh/ssh-library.ts";
import { output } from "../contract/aido-contract.ts";
import { heldBytes } from "../processes/held-bytes.ts";
import { type SshBed, sshBed } from "./ssh-bed.ts";

const BYTES = 50_000_000;
const LOCAL = { driver: "local", image: "bash" } as const;

describe("hostile SSH clients", () => {
  test("garbage before and after the greeting ends its own connection and no other", async () => {
    await using bed = await sshBed(LOCAL);
    const key = await bed.allowedKey();
    const packet = (length: number, body: Buffer) => {
      const head = Buffer.alloc(4);
      head.writeUInt32BE(length);
      return Buffer.concat([head, body]);
    };
    for (const bytes of [
      randomBytes(100_000),
      Buffer.from("GET / HTTP/1.1\r\n\r\n"),
      Buffer.from(`SSH-2.0-${"x".repeat(100_000)}`),
      Buffer.concat([Buffer.from("SSH-2.0-x\r\n"), randomBytes(100_000)]),
      Buffer.concat([Buffer.from("SSH-2.0-x\r\n"), packet(0xffffffff, randomBytes(1000))]),
      Buffer.concat([Buffer.from("SSH-2.0-x\r\n"), packet(12, Buffer.alloc(12, 20))]),
      Buffer.from("SSH-1.5-old\r\n"),
      Buffer.alloc(200_000, "\n"),
    ]) {
      const socket = await open(bed);
      socket.on("error", () => undefined);
      socket.write(bytes);
      socket.resume();
      await once(socket, "close");
    }
    expect(await bed.ssh(key, ["echo fine"])).toMatchObject({ code: 0, stdout: "fine\n" });
  });

  test("only so many who have not logged in are waited for, and the next are turned away", async () => {
    await using bed = await sshBed(LOCAL);
    const key = await bed.allowedKey();
    const sockets = await Promise.all(Array.from({ length: 16 }, () => open(bed)));
    const more = await open(bed);
    more.on("error", () => undefined);
    more.resume();
    await once(more, "close");
    for (const socket of sockets) socket.destroy();
    await expect.poll(async () => (await bed.ssh(key, ["echo in"])).stdout, { timeout: 20_000 }).toBe("in\n");
  });

  test("thousands of channels are refused and the connection stays of use", async () => {
    await using bed = await sshBed(LOCAL);
    const client = await logIn(bed);
    let [opened, refused] = [0, 0];
    await Promise.all(
      Array.from(
        { length: 3000 },
        () =>
          new Promise<void>((resolve) => {
            client.shell(false, (error) => {
              if (error === undefined) opened += 1;
              else refused += 1;
              resolve();
            });
          }),
      ),
    );
    expect(opened).toBeLessThanOrEqual(32);
    expect(refused).toBe(3000 - opened);
    client.end();
    expect(await bed.ssh(bed.path("id"), ["echo fine"])).toMatchObject({ stdout: "fine\n" });
  });

  test("six keys that do not fit end the connection", async () => {
    await using bed = await sshBed(LOCAL);
    const key = await bed.allowedKey();
    const wrong = Array.from({ length: 8 }, (_, at) => bed.key(`wrong${at}`));
    const all = wrong.flatMap((file) => ["-i", file]);
    const tried = await bed.ssh(wrong[0] ?? "", [...all, "-i", key, "true"]);
    expect(tried.code).toBe(255);
    expect(tried.stderr).not.toContain("Permission denied");
  });

  test("paths over SFTP never leave the sandbox", async () => {
    await using bed = await sshBed(LOCAL);
    const client = await logIn(bed);
    const sftp = await new Promise<import("ssh2").SFTPWrapper>((resolve, reject) => {
      client.sftp((error, opened) => (error === undefined ? resolve(opened) : reject(error)));
    });
    const root = bed.directory;
    await output(bed.aido, bed.id, ["sh", "-c", `ln -s ${root}/id out; ln -s / root; mkfifo pipe`]);
    const read = (path: string) =>
      new Promise<string>((resolve) => {
        sftp.readFile(path, (error, data) => resolve(error === undefined ? data.toString() : "refused"));
      });
    const secret = readFileSync(bed.path("id"), "utf8");
    for (const path of [
      bed.path("id"),
      `../../../../../../../..${bed.path("id")}`,
      "out",
      `root${bed.path("id")}`,
      `/proc/1/root${bed.path("id")}`,
      "/proc/self/root/../../etc/shadow",
      "pipe",
      "a\0b",
      "x".repeat(10_000),
    ]) {
      const got = await read(path);
      expect(got, path.slice(0, 60)).toBe("refused");
      expect(got).not.toContain(secret);
    }
    client.end();
  });

  test("a client that asks for much and reads nothing takes no memory", async () => {
    await using bed = await sshBed(LOCAL);
    const client = await logIn(bed);
    const stream = await new Promise<import("ssh2").ClientChannel>((resolve, reject) => {
      client.exec(`head -c ${BYTES} /dev/zero`, (error, opened) =>
        error === undefined ? resolve(opened) : reject(error),
      );
    });
    stream.pause();
    const before = heldBytes();
    const hasEnded = async () => (await bed.aido.execs.list(bed.id))[0]?.status;
    await expect.poll(hasEnded, { timeout: 60_000 }).toBe("exited");
    expect(heldBytes() - before).toBeLessThan(BYTES / 2);
    let sent = 0;
    stream.on("data", (chunk: Buffer) => {
      sent += chunk.length;
    });
    stream.resume();
    await once(stream, "close");
    expect(sent).toBe(BYTES);
    client.end();
  });
});

async function open(bed: SshBed): Promise<Socket> {
  const socket = connect(bed.port, "127.0.0.1");
  await once(socket, "connect");
  return socket;
}

async function logIn(bed: SshBed) {
  const key = await bed.allowedKey();
  const { Client } = await loadSshLibrary();
  const client = new Client();
  client.on("error", () => undefined);
  client.connect({
    host: "127.0.0.1",
    port: bed.port,
    username: bed.id,
    privateKey: readFileSync(key),
  });
  await once(client, "ready");
  return client;
}
