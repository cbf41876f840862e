import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { snapshotReply } from "@aido/sdk/schemas";
import { expect, test } from "vitest";
import { ApiBed } from "../../test/server/api-bed.ts";

async function openBed(options: { guarded?: boolean } = {}) {
  const objects = await mkdtemp(join(tmpdir(), "aido-objects-"));
  const env = { AIDO_SNAPSHOT_PREFIX: pathToFileURL(objects).href };
  const bed = await ApiBed.open({ ...options, env });
  return {
    bed,
    objects,
    async [Symbol.asyncDispose]() {
      await bed[Symbol.asyncDispose]();
      await rm(objects, { recursive: true, force: true });
    },
  };
}

test("S2-23 a snapshot is taken and put back over HTTP", async () => {
  await using opened = await openBed();
  const { bed } = opened;
  const id = await bed.sandbox();
  const file = `/api/sandbox/${id}/files?path=a.txt`;
  await bed.call("PUT", file, { raw: "first" });
  const taken = await bed.post(`/api/sandbox/${id}/snapshot`, {});
  expect(taken.status).toBe(200);
  expect(snapshotReply.safeParse(taken.json).error).toBeUndefined();
  await bed.call("PUT", file, { raw: "second" });
  await bed.call("PUT", `/api/sandbox/${id}/files?path=later`, { raw: "later" });
  const { url, sha256 } = taken.json;
  expect((await bed.post(`/api/sandbox/${id}/restore`, { url, sha256 })).json).toEqual({ status: "success" });
  expect((await bed.get(file)).text).toBe("first");
  expect((await bed.get(`/api/sandbox/${id}/files?path=later`)).status).toBe(404);
});

test("the SDK's client takes and restores; a damaged object is refused with its reason", async () => {
  await using opened = await openBed();
  const { bed } = opened;
  const id = await bed.sandbox();
  const client = bed.client();
  await client.files.write(id, "a.txt", Buffer.from("first"));
  const taken = await client.snapshots.take(id, { includeWorkspace: true });
  expect(taken.createdAt).toBeInstanceOf(Date);
  await client.snapshots.restore(id, taken.url, { sha256: taken.sha256 });
  const object = fileURLToPath(taken.url);
  await writeFile(object, (await readFile(object)).subarray(0, 50));
  await expect(client.snapshots.restore(id, taken.url)).rejects.toMatchObject({ code: "OBJECT_BROKEN" });
  expect((await client.files.stat(id, "a.txt")).size).toBe(5);
});

test.each<[string, object, number, string]>([
  ["a private address", { destination: "https://169.254.169.254/x" }, 403, "DESTINATION_REFUSED"],
  ["plain http", { destination: "http://example.com/x" }, 403, "DESTINATION_REFUSED"],
  ["a file of the server", { destination: "file:///etc/cron.d/x" }, 403, "DESTINATION_REFUSED"],
  ["somebody's bucket", { destination: "s3://bucket/x" }, 403, "DESTINATION_REFUSED"],
  ["no address", { destination: "here" }, 400, "VALIDATION_ERROR"],
  ["nothing to hold", { includeWorkspace: false }, 400, "VALIDATION_ERROR"],
  ["an unknown field", { to: "x" }, 400, "VALIDATION_ERROR"],
])("S2-93 %s is refused as a destination", async (_, body, status, code) => {
  await using opened = await openBed();
  const { bed } = opened;
  const reply = await bed.post(`/api/sandbox/${await bed.sandbox()}/snapshot`, body);
  expect([reply.status, reply.json.error.code]).toEqual([status, code]);
});

test("only the owner of a sandbox takes and restores its snapshots", async () => {
  await using opened = await openBed({ guarded: true });
  const { bed } = opened;
  const [key, other] = [await bed.key("a"), await bed.key("b")];
  const at = `/api/sandbox/${await bed.sandbox(key)}`;
  expect((await bed.call("POST", `${at}/snapshot`, { key: other, body: {} })).status).toBe(404);
  expect((await bed.call("POST", `${at}/restore`, { key: other, body: { url: "x" } })).status).toBe(404);
  expect((await bed.call("POST", `${at}/snapshot`, { key, body: {} })).status).toBe(200);
});
