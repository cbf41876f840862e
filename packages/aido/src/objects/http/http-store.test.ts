import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { collect, inChunks, objectStoreContract } from "../../../test/contract/object-store-contract.ts";
import { WebServer } from "../../../test/objects/web-server.ts";
import { HttpSender } from "../wire/http-sender.ts";
import { HttpStore } from "./http-store.ts";

async function openHttp(query = "", silenceMs = 10_000) {
  const server = await WebServer.start();
  const spoolDirectory = await mkdtemp(join(tmpdir(), "aido-spool-"));
  const sender = new HttpSender({ isTrusted: true, silenceMs });
  return {
    server,
    spoolDirectory,
    store: new HttpStore(new URL(`${server.url}/files${query}`), { sender, spoolDirectory }),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await rm(spoolDirectory, { recursive: true, force: true });
    },
  };
}

objectStoreContract("HTTP", () => openHttp());

const body = () => inChunks(Buffer.from("some content"), 5);

test("an address that is signed keeps its query, and no message shows it", async () => {
  await using opened = await openHttp("?X-Amz-Signature=very-secret");
  await opened.store.put("a.tar.gz", body());
  expect([...opened.server.objects.keys()]).toEqual(["/files/a.tar.gz?X-Amz-Signature=very-secret"]);
  opened.server.answer = (_, response) => response.writeHead(403).end("very-secret is wrong");
  const failure = await opened.store.put("a.tar.gz", body()).catch((thrown: unknown) => thrown);
  expect(failure).toMatchObject({ code: "OBJECT_STORE_REFUSED" });
  expect(JSON.stringify(failure) + String(failure)).not.toContain("very-secret");
});

test("a server that cannot be asked what it has is believed, one that has less is not", async () => {
  await using opened = await openHttp();
  opened.server.answer = (request, response) => {
    request.resume();
    request.on("end", () => response.writeHead(request.method === "PUT" ? 200 : 403).end());
  };
  await expect(opened.store.put("key", body())).resolves.toMatchObject({ bytes: 12 });
  opened.server.answer = (request, response) => {
    request.resume();
    request.on("end", () => response.writeHead(200, { "content-length": 7 }).end());
  };
  await expect(opened.store.put("key", body())).rejects.toMatchObject({ code: "OBJECT_BROKEN" });
});

test("what cannot be asked for by HEAD is looked at by its first byte", async () => {
  await using opened = await openHttp();
  opened.server.answer = (request, response) => {
    if (request.method === "HEAD") response.writeHead(403).end();
    else if (request.headers.range === "bytes=0-0")
      response.writeHead(206, { "content-range": "bytes 0-0/12", "content-length": 1 }).end("s");
    else response.writeHead(500).end();
  };
  expect(await opened.store.head("key")).toEqual({ bytes: 12 });
  // No length, and a server that knows no ranges.
  opened.server.answer = (request, response) => {
    if (request.method === "HEAD") response.writeHead(200, { "transfer-encoding": "chunked" }).end();
    else response.writeHead(200, { "content-length": 12 }).end("some content");
  };
  expect(await opened.store.head("key")).toEqual({ bytes: 12 });
  opened.server.answer = (request, response) =>
    response.writeHead(request.method === "HEAD" ? 405 : 404).end();
  expect(await opened.store.head("key")).toBeUndefined();
  opened.server.answer = (_, response) => response.writeHead(403).end();
  await expect(opened.store.head("key")).rejects.toMatchObject({ code: "OBJECT_STORE_REFUSED" });
  opened.server.answer = (_, response) =>
    response.writeHead(206, { "content-range": "bytes 0-0/*" }).end("s");
  await expect(opened.store.head("key")).rejects.toMatchObject({ code: "OBJECT_STORE_REFUSED" });
});

test("a download that is cut off raises and never just ends", async () => {
  await using opened = await openHttp();
  opened.server.answer = (_, response) => {
    response.writeHead(200, { "content-length": 100 });
    response.write("half", () => response.socket?.destroy());
  };
  const stream = await opened.store.get("key");
  await expect(collect(stream)).rejects.toMatchObject({ code: "OBJECT_STORE_UNAVAILABLE" });
});

test("an upload that is cut off raises, and nothing stays on the disk", async () => {
  await using opened = await openHttp();
  opened.server.answer = (request) => {
    request.once("data", () => request.socket.destroy());
  };
  await expect(opened.store.put("key", body())).rejects.toMatchObject({ code: "OBJECT_STORE_UNAVAILABLE" });
  expect(await readdir(opened.spoolDirectory)).toEqual([]);
});

test("a server that falls silent is given up", async () => {
  await using opened = await openHttp("", 100);
  opened.server.answer = () => undefined;
  await expect(opened.store.get("key")).rejects.toMatchObject({ code: "OBJECT_STORE_UNAVAILABLE" });
  await expect(opened.store.put("key", body())).rejects.toMatchObject({ code: "OBJECT_STORE_UNAVAILABLE" });
});
