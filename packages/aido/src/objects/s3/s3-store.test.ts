import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { inChunks } from "../../../test/contract/object-store-contract.ts";
import { type Answer, WebServer } from "../../../test/objects/web-server.ts";
import { S3Store } from "./s3-store.ts";

const LARGE = 9 * 1024 * 1024;

async function openScripted(answer: Answer) {
  const server = await WebServer.start();
  server.answer = (request, response) => {
    request.resume();
    request.on("end", () => answer(request, response));
  };
  const store = new S3Store(
    { bucket: "bucket", prefix: "" },
    {
      clock: { now: () => new Date(), sleep: async () => undefined },
      settings: {
        endpoint: server.url,
        region: "eu-west-1",
        pathStyle: undefined,
        credentials: () => ({ accessKeyId: "id", secretAccessKey: "secret", sessionToken: "token" }),
      },
    },
  );
  return { server, store, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

const xml = (name: string, inside: string) => `<${name}>${inside}</${name}>`;
const began = xml("InitiateMultipartUploadResult", xml("UploadId", "u1"));

test("a part that the server names by another hash is sent again, and in the end the upload is given up", async () => {
  await using opened = await openScripted((request, response) => {
    if (request.method === "POST") response.end(began);
    else response.writeHead(200, { etag: '"00000000000000000000000000000000"' }).end();
  });
  await expect(opened.store.put("key", inChunks(randomBytes(LARGE), LARGE))).rejects.toMatchObject({
    code: "OBJECT_STORE_UNAVAILABLE",
    message: "Part 1 arrived damaged",
  });
  expect(opened.server.seen.filter(({ method }) => method === "PUT")).toHaveLength(5);
  expect(opened.server.seen.at(-1)).toMatchObject({ method: "DELETE", url: "/bucket/key?uploadId=u1" });
});

test("an upload whose body breaks off is given up at the server", async () => {
  await using opened = await openScripted((request, response) => {
    if (request.method === "POST") response.end(began);
    else response.writeHead(200, { etag: '"odd"' }).end();
  });
  const body = async function* () {
    yield randomBytes(2 * LARGE);
    throw new Error("the sandbox is gone");
  };
  await expect(opened.store.put("key", body())).rejects.toThrow("the sandbox is gone");
  expect(opened.server.seen.map(({ method }) => method)).toEqual(["POST", "PUT", "PUT", "DELETE"]);
});

test("an object that is smaller at the server than what was sent is told", async () => {
  await using opened = await openScripted((request, response) =>
    response.writeHead(200, request.method === "HEAD" ? { "content-length": 2 } : {}).end(),
  );
  await expect(opened.store.put("key", inChunks(Buffer.from("four"), 4))).rejects.toMatchObject({
    code: "OBJECT_BROKEN",
  });
});

test("a completion that fails after its answer began is tried again", async () => {
  let completions = 0;
  await using opened = await openScripted((request, response) => {
    if (request.url?.includes("uploads")) response.end(began);
    else if (request.method === "PUT") response.writeHead(200, { etag: '"odd"' }).end();
    else if (request.method === "HEAD") response.writeHead(200, { "content-length": LARGE }).end();
    else {
      completions += 1;
      response.end(
        completions === 1 ? xml("Error", xml("Code", "InternalError")) : xml("CompleteResult", ""),
      );
    }
  });
  await opened.store.put("key", inChunks(randomBytes(LARGE), LARGE));
  expect(completions).toBe(2);
});

test("a server that is busy is asked again; one that refuses is not", async () => {
  let asked = 0;
  await using busy = await openScripted((_, response) => {
    asked += 1;
    response.writeHead(asked < 3 ? 503 : 404).end();
  });
  expect(await busy.store.head("key")).toBeUndefined();
  expect(asked).toBe(3);
  await using refusing = await openScripted((_, response) => response.writeHead(403).end());
  await expect(refusing.store.remove("key")).rejects.toMatchObject({ code: "OBJECT_STORE_REFUSED" });
  expect(refusing.server.seen).toHaveLength(1);
});

test("a redirect is an error and not followed", async () => {
  await using opened = await openScripted((_, response) =>
    response.writeHead(307, { location: "http://127.0.0.1:9/" }).end(),
  );
  await expect(opened.store.get("key")).rejects.toMatchObject({
    code: "OBJECT_STORE_REFUSED",
    hint: expect.stringContaining("AIDO_S3_REGION"),
  });
});

test("requests are signed for the region and carry the session's token", async () => {
  let headers: Record<string, unknown> = {};
  await using opened = await openScripted((request, response) => {
    headers = request.headers;
    response.writeHead(404).end();
  });
  await opened.store.head("key");
  expect(headers["authorization"]).toMatch(
    /^AWS4-HMAC-SHA256 Credential=id\/\d{8}\/eu-west-1\/s3\/aws4_request/,
  );
  expect(headers["x-amz-security-token"]).toBe("token");
});
