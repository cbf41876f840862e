import type { lookup as systemLookup } from "node:dns";
import { expect, test } from "vitest";
import { OperatorPolicy } from "../../src/core/object-store/destination-policy.ts";
import type { ObjectStore } from "../../src/core/object-store/object-store.ts";
import { ObjectStores } from "../../src/core/object-store/object-stores.ts";
import { isPublicAddress } from "../../src/core/object-store/public-address.ts";
import { HttpSender } from "../../src/objects/wire/http-sender.ts";
import { WebServer } from "./web-server.ts";

const PREFIX = "s3://operator/snapshots";

function stores(allow: readonly string[] = []) {
  const opened: { url: string; isTrusted: boolean }[] = [];
  const open = async (url: URL, reach: { isTrusted: boolean }) => {
    opened.push({ url: url.href, ...reach });
    return {} as ObjectStore;
  };
  const policy = new OperatorPolicy({ prefix: PREFIX, allow });
  return {
    opened,
    stores: new ObjectStores({ policy, open: { "s3:": open, "https:": open, "http:": open, "file:": open } }),
  };
}

test.each([
  "http://example.com/x",
  "ftp://example.com/x",
  "file:///etc/passwd",
  "gopher://example.com/x",
  "data:text/plain,x",
  "s3://somebody/x",
  "https://127.0.0.1/x",
  "https://127.1/x",
  "https://2130706433/x",
  "https://0x7f000001/x",
  "https://0177.0.0.1/x",
  "https://0/x",
  "https://0.0.0.0/x",
  "https://10.1.2.3/x",
  "https://172.31.255.255/x",
  "https://192.168.0.1:8443/x",
  "https://100.64.0.1/x",
  "https://169.254.169.254/latest/meta-data",
  "https://169.254.170.2/x",
  "https://192.0.0.192/x",
  "https://224.0.0.1/x",
  "https://255.255.255.255/x",
  "https://[::]/x",
  "https://[::1]/x",
  "https://[::ffff:127.0.0.1]/x",
  "https://[::ffff:a9fe:a9fe]/x",
  "https://[::127.0.0.1]/x",
  "https://[fe80::1]/x",
  "https://[fc00::1]/x",
  "https://[fd00:ec2::254]/x",
  "https://[ff02::1]/x",
  "https://[64:ff9b::7f00:1]/x",
  "https://[2002:7f00:1::]/x",
  "https://[2001:0:7f00:1::]/x",
  "https://[2001:db8::1]/x",
  "https://１２７.0.0.1/x",
])("a user's destination %s is refused", async (address) => {
  const { stores: all, opened } = stores();
  await expect(all.locate(address)).rejects.toMatchObject({
    code: expect.stringMatching(/DESTINATION_REFUSED|VALIDATION_ERROR|INVALID_PATH/),
  });
  expect(opened).toEqual([]);
});

test.each([
  "https://user@example.com/x",
  "https://user:password@example.com/x",
  "https://example.com@169.254.169.254/x",
  "https://example.com/x#fragment",
  "https://example.com/a/../x",
  "https://example.com/a/%2e%2e/x",
  "https://example.com/a/.%2E/x",
  "https://example.com/a%2fx",
  "https://example.com/a%5cx",
  "https://example.com/a%00x",
  "https://example.com/a\\x",
  "https://example.com//x",
  "https://example.com/x\n",
  " https://example.com/x",
  "https://example.com/%ff",
  "s3://operator/snapshots/../other",
  "s3://operator/snapshots/a?versionId=1",
  "not an address",
  "",
  "https://",
])("%j is no address at all", async (address) => {
  const { stores: all, opened } = stores();
  await expect(all.open(address)).rejects.toMatchObject({ code: "VALIDATION_ERROR" });
  expect(opened).toEqual([]);
});

test("a message about a refused address does not repeat its password", async () => {
  const { stores: all } = stores();
  const failure = await all.open("https://me:pa55word@example.com/x").catch((thrown: unknown) => thrown);
  expect(JSON.stringify(failure) + String(failure)).not.toContain("pa55word");
});

test("https to a public host is free, and connects to public addresses only", async () => {
  const { stores: all, opened } = stores();
  await all.locate("https://example.com/backups/x.tar.gz?X-Amz-Signature=1");
  await all.locate("https://[2606:4700::1111]/x");
  await all.locate("https://1.1.1.1:8443/x");
  expect(opened.map(({ isTrusted }) => isTrusted)).toEqual([false, false, false]);
  expect(opened[0]?.url).toBe("https://example.com/backups/?X-Amz-Signature=1");
});

test("S2-122 what lies beneath the operator's prefix is trusted, its neighbours are not", async () => {
  const { stores: all } = stores();
  await expect(all.locate("s3://operator/snapshots/box/snapshot.tar.gz")).resolves.toBeDefined();
  await expect(all.locate("s3://operator/snapshots-of-others/x")).rejects.toMatchObject({
    code: "DESTINATION_REFUSED",
  });
  await expect(all.locate("s3://operator/x")).rejects.toMatchObject({ code: "DESTINATION_REFUSED" });
});

test("S2-67 operator-managed means beneath the prefix, in the letter and not by its beginning", () => {
  const { stores: all } = stores();
  expect(all.isOperatorManaged("s3://operator/snapshots/box/snapshot.tar.gz")).toBe(true);
  expect(all.isOperatorManaged("s3://operator/snapshots")).toBe(false);
  expect(all.isOperatorManaged("s3://operator/snapshots-other/box")).toBe(false);
  expect(all.isOperatorManaged("s3://operator.evil/snapshots/box")).toBe(false);
  expect(all.isOperatorManaged("https://operator/snapshots/box")).toBe(false);
  const without = new OperatorPolicy({ prefix: undefined, allow: [PREFIX] });
  expect(without.isOperatorManaged("s3://operator/snapshots/box")).toBe(false);
});

test("a destination that the operator allows may be private and plain http", async () => {
  const { stores: all, opened } = stores([
    "http://172.17.0.1:9100/snapshots",
    "minio.lan:9000",
    "10.0.0.5",
    "s3://users/",
  ]);
  await all.locate("http://172.17.0.1:9100/snapshots/x");
  await all.locate("http://minio.lan:9000/x");
  await all.locate("https://MINIO.lan:9000/x");
  await all.locate("http://10.0.0.5:1234/x");
  await all.locate("s3://users/me/x");
  expect(opened.every(({ isTrusted }) => isTrusted)).toBe(true);
  for (const other of [
    "http://172.17.0.1:9100/other/x",
    "http://172.17.0.1:9101/snapshots/x",
    "http://minio.lan:9001/x",
    "http://minio.lan/x",
    "s3://users2/x",
  ]) {
    await expect(all.locate(other)).rejects.toMatchObject({ code: "DESTINATION_REFUSED" });
  }
});

test.each(["not a host/", "me@host", "s3://", "https://host/?q=1"])(
  "an allowed destination %j is a mistake and said so",
  (entry) => {
    expect(() => new OperatorPolicy({ prefix: undefined, allow: [entry] })).toThrow(/snapshot.allow/);
  },
);

const resolver = (answers: readonly (readonly string[])[]) => {
  let asked = 0;
  const lookup = (_name: string, _options: object, callback: (error: null, found: object[]) => void) => {
    const addresses = answers[Math.min(asked, answers.length - 1)] ?? [];
    asked += 1;
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    );
  };
  return { lookup: lookup as unknown as typeof systemLookup, asked: () => asked };
};

test.each([
  [["127.0.0.1"]],
  [["93.184.216.34", "127.0.0.1"]],
  [["::1"]],
  [["::ffff:10.0.0.1"]],
  [["169.254.169.254"]],
])("a name that leads to %j is not connected to", async (addresses) => {
  await using server = await WebServer.start();
  const sender = new HttpSender({ isTrusted: false, lookup: resolver([addresses]).lookup });
  const url = new URL(`http://innocent.example:${server.port}/x`);
  await expect(sender.send({ method: "GET", url })).rejects.toMatchObject({ code: "DESTINATION_REFUSED" });
  expect(server.seen).toEqual([]);
});

test("the address that was checked is the one that is connected to: a name that changes its mind gains nothing", async () => {
  await using server = await WebServer.start();
  const names = resolver([["127.0.0.1"], ["127.0.0.99"]]);
  const sender = new HttpSender({
    isTrusted: false,
    lookup: names.lookup,
    isAllowed: (address) => address === "127.0.0.1",
  });
  const reply = await sender.send({ method: "GET", url: new URL(`http://public.example:${server.port}/x`) });
  reply.discard();
  expect(reply.status).toBe(404);
  expect(names.asked()).toBe(1);
  expect(server.seen).toEqual([{ method: "GET", url: "/x", host: `public.example:${server.port}` }]);
});

test("an address that is written out is checked too, though nothing is looked up", async () => {
  await using server = await WebServer.start();
  const sender = new HttpSender({ isTrusted: false });
  for (const host of ["127.0.0.1", "2130706433", "0"]) {
    const url = new URL(`http://${host}:${server.port}/x`);
    await expect(sender.send({ method: "GET", url })).rejects.toMatchObject({ code: "DESTINATION_REFUSED" });
  }
  expect(server.seen).toEqual([]);
});

test("a redirect is not followed", async () => {
  await using server = await WebServer.start();
  server.answer = (_, response) => response.writeHead(302, { location: `${server.url}/secret` }).end();
  const sender = new HttpSender({ isTrusted: true });
  const reply = await sender.send({ method: "GET", url: new URL(`${server.url}/x`) });
  reply.discard();
  expect(reply.status).toBe(302);
  expect(server.seen.map(({ url }) => url)).toEqual(["/x"]);
});

test.each(["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"])(
  "%s is public",
  (address) => {
    expect(isPublicAddress(address)).toBe(true);
  },
);

test.each(["", "localhost", "1.1.1", "::", "::ffff:1.1.1.1"])("%j is not public", (address) => {
  expect(isPublicAddress(address)).toBe(false);
});
