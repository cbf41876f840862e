import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Clock } from "../../src/core/clock.ts";
import { SystemClock } from "../../src/core/system-clock.ts";
import type { S3Settings } from "../../src/objects/s3/s3-client.ts";
import { S3Store } from "../../src/objects/s3/s3-store.ts";
import { S3Server } from "../backends/s3-server.ts";
import { TcpProxy } from "../backends/tcp-proxy.ts";
import { collect, inChunks, objectStoreContract, sha256 } from "../contract/object-store-contract.ts";

let server: S3Server;
beforeAll(async () => {
  server = await S3Server.start();
}, 120_000);
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

/** Waits are told and not waited for. */
class EagerClock implements Clock {
  waits = 0;
  now(): Date {
    return new Date();
  }
  async sleep(_ms: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    this.waits += 1;
  }
}

function open(changes: Partial<S3Settings> = {}, clock: Clock = new SystemClock(), bucket = server.bucket) {
  return new S3Store(
    { bucket, prefix: randomBytes(6).toString("hex") },
    { settings: server.settings(changes), clock },
  );
}

const LARGE = 20 * 1024 * 1024 + 5;

objectStoreContract("S3", async () => ({ store: open(), async [Symbol.asyncDispose]() {} }));

test("wrong credentials are refused at once, and no message shows them", async () => {
  const clock = new EagerClock();
  const credentials = () => ({ accessKeyId: "S3RVER", secretAccessKey: "not-the-secret" });
  const store = open({ credentials }, clock);
  const failure = await store.put("key", inChunks(Buffer.from("x"), 1)).catch((thrown: unknown) => thrown);
  expect(failure).toMatchObject({
    code: "OBJECT_STORE_REFUSED",
    details: { s3Code: "SignatureDoesNotMatch" },
  });
  expect(JSON.stringify(failure) + String(failure)).not.toContain("not-the-secret");
  expect(clock.waits).toBe(0);
  await expect(open({ credentials: () => undefined }).head("key")).rejects.toMatchObject({
    code: "OBJECT_STORE_REFUSED",
  });
});

test("a bucket that is missing is told", async () => {
  const store = open({}, new EagerClock(), "no-such-bucket");
  await expect(store.put("key", inChunks(Buffer.from("x"), 1))).rejects.toMatchObject({
    code: "OBJECT_NOT_FOUND",
  });
  await expect(store.get("key")).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
});

test.each(["Bad", "a", "a..b", "-a-", "a/b", "evil.com:80"])("%j is no bucket", (bucket) => {
  expect(() => open({}, new EagerClock(), bucket)).toThrow(/bucket/);
});

test("a server that is away is asked five times, then given up", async () => {
  const clock = new EagerClock();
  await using proxy = await TcpProxy.to({ port: server.port, host: "127.0.0.1" });
  proxy.isRefusing = true;
  const store = open({ endpoint: `http://127.0.0.1:${proxy.port}` }, clock);
  await expect(store.head("key")).rejects.toMatchObject({ code: "OBJECT_STORE_UNAVAILABLE" });
  expect(clock.waits).toBe(4);
});

test("an upload whose connection is cut midway arrives all the same", async () => {
  await using proxy = await TcpProxy.to({ port: server.port, host: "127.0.0.1" });
  const store = open({ endpoint: `http://127.0.0.1:${proxy.port}` }, new EagerClock());
  const content = randomBytes(LARGE);
  const body = async function* () {
    let sent = 0;
    for await (const chunk of inChunks(content, 1024 * 1024)) {
      sent += chunk.byteLength;
      // While the first part is on its way, and again later.
      if (sent === 9 * 1024 * 1024 || sent === 18 * 1024 * 1024) setImmediate(() => proxy.cut());
      yield chunk;
    }
  };
  await store.put("large", body());
  expect(sha256(await collect(await store.get("large")))).toBe(sha256(content));
});

test("a download goes on where its connection was cut", async () => {
  await using proxy = await TcpProxy.to({ port: server.port, host: "127.0.0.1" });
  const store = open({ endpoint: `http://127.0.0.1:${proxy.port}` }, new EagerClock());
  const content = randomBytes(LARGE);
  await store.put("large", inChunks(content, LARGE));
  proxy.cutAfterBytes = 6 * 1024 * 1024;
  expect(sha256(await collect(await store.get("large")))).toBe(sha256(content));
});

test("an object that is replaced while its download is interrupted is not mixed with the new one", async () => {
  await using proxy = await TcpProxy.to({ port: server.port, host: "127.0.0.1" });
  const store = open({ endpoint: `http://127.0.0.1:${proxy.port}` }, new EagerClock());
  await store.put("large", inChunks(randomBytes(LARGE), LARGE));
  proxy.cutAfterBytes = 6 * 1024 * 1024;
  let isReplaced = false;
  const read = async () => {
    for await (const chunk of await store.get("large")) {
      if (isReplaced || chunk.byteLength === 0) continue;
      isReplaced = true;
      proxy.cutAfterBytes = undefined;
      await store.put("large", inChunks(randomBytes(LARGE), LARGE));
      proxy.cut();
    }
  };
  await expect(read()).rejects.toMatchObject({ code: "OBJECT_BROKEN" });
});
