import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { collect, inChunks } from "../../test/contract/object-store-contract.ts";
import { WebServer } from "../../test/objects/web-server.ts";
import { loadConfig } from "../config/load-config.ts";
import { SystemClock } from "../core/system-clock.ts";
import { makeObjectStores } from "./object-stores.ts";

async function openStores(env: Record<string, string>) {
  const directory = await mkdtemp(join(tmpdir(), "aido-stores-"));
  const { config } = loadConfig({ env: { AIDO_DATA_DIR: directory, ...env }, cwd: directory });
  return {
    directory,
    ...makeObjectStores(config, new SystemClock()),
    [Symbol.asyncDispose]: async () => await rm(directory, { recursive: true, force: true }),
  };
}

const text = () => inChunks(Buffer.from("content"), 3);

test("S2-122 the operator's prefix may be a directory", async () => {
  const root = await mkdtemp(join(tmpdir(), "aido-prefix-"));
  await using opened = await openStores({ SANDBOX_SNAPSHOT_DESTINATION_PREFIX: pathToFileURL(root).href });
  const { store, key } = await opened.stores.locate(`${opened.policy.prefix}box 1/snapshot.tar.gz`);
  await store.put(key, text());
  expect(await readFile(join(root, "box 1/snapshot.tar.gz"), "utf8")).toBe("content");
  await expect(opened.stores.locate("file:///etc/passwd")).rejects.toMatchObject({
    code: "DESTINATION_REFUSED",
  });
  await rm(root, { recursive: true });
});

test("a web server that the operator allows takes objects over plain http", async () => {
  await using server = await WebServer.start();
  await using opened = await openStores({ AIDO_SNAPSHOT_ALLOW: `127.0.0.1:${server.port}, s3://users/` });
  const { store, key } = await opened.stores.locate(`${server.url}/a/b.tar.gz?signature=1`);
  await store.put(key, text());
  expect([...server.objects.keys()]).toEqual(["/a/b.tar.gz?signature=1"]);
  expect((await collect(await store.get(key))).toString()).toBe("content");
});

test("an S3 server is reached as the usual variables say", async () => {
  await using server = await WebServer.start();
  server.answer = (_, response) => response.writeHead(404).end();
  await using opened = await openStores({
    AWS_ENDPOINT_URL: "http://127.0.0.1:1",
    AWS_ENDPOINT_URL_S3: server.url,
    AWS_ACCESS_KEY_ID: "id",
    AWS_SECRET_ACCESS_KEY: "secret",
    SANDBOX_SNAPSHOT_DESTINATION_PREFIX: "s3://bucket/pre fix",
  });
  const { store, key } = await opened.stores.locate("s3://bucket/pre%20fix/a/b");
  expect(await store.head(key)).toBeUndefined();
  expect(server.seen.map(({ url }) => url)).toEqual(["/bucket/pre%20fix/a/b"]);
});

test("an address of another kind is told with those there are", async () => {
  await using opened = await openStores({ AIDO_SNAPSHOT_ALLOW: "ftp://host/" });
  await expect(opened.stores.open("ftp://host/x")).rejects.toMatchObject({
    code: "VALIDATION_ERROR",
    hint: expect.stringContaining("s3:"),
  });
});
