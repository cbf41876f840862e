import { fileListReply, fileReply } from "@aido/sdk/schemas";
import { describe, expect, test } from "vitest";
import { ApiBed } from "../../test/server/api-bed.ts";
import { readEvents } from "../../test/server/read-events.ts";

describe("files over HTTP", () => {
  test("S3-5 a file is written, read, shown, moved, listed and removed", async () => {
    await using bed = await ApiBed.open();
    const base = `/api/sandbox/${await bed.sandbox()}/files`;
    const bytes = Uint8Array.from({ length: 256 }, (_, at) => at);
    expect((await bed.call("PUT", `${base}?path=a/b.bin&mode=640`, { raw: bytes })).json).toEqual({
      status: "success",
    });
    const read = await bed.fetch("GET", `${base}?path=a/b.bin`);
    expect(new Uint8Array(await read.arrayBuffer())).toEqual(bytes);
    expect(read.headers.get("content-disposition")).toBe("attachment");
    expect(read.headers.get("x-content-type-options")).toBe("nosniff");
    const stat = await bed.get(`${base}/stat?path=a/b.bin`);
    expect(fileReply.safeParse(stat.json).error).toBeUndefined();
    expect(stat.json).toMatchObject({ type: "file", size: 256 });
    await bed.post(`${base}/mkdir`, { path: "c/d" });
    await bed.post(`${base}/move`, { from: "a/b.bin", to: "c/d/e" });
    const list = await bed.get(`${base}/list?path=c&recursive=true`);
    expect(fileListReply.safeParse(list.json).error).toBeUndefined();
    expect(JSON.stringify(list.json)).toContain("d/e");
    expect((await bed.call("DELETE", `${base}?path=c`)).status).toBe(200);
    expect((await bed.call("DELETE", `${base}?path=c`)).status).toBe(200);
    expect((await bed.get(`${base}?path=c/d/e`)).json.error.code).toBe("FILE_NOT_FOUND");
  });

  test("an empty file is empty, not missing", async () => {
    await using bed = await ApiBed.open();
    const base = `/api/sandbox/${await bed.sandbox()}/files`;
    await bed.call("PUT", `${base}?path=none`);
    const read = await bed.get(`${base}?path=none`);
    expect(read.status).toBe(200);
    expect(read.text).toBe("");
  });

  test.each<[string, string, string, number, string]>([
    ["a file that is not there", "GET", "?path=none", 404, "FILE_NOT_FOUND"],
    ["a stat of nothing", "GET", "/stat?path=none", 404, "FILE_NOT_FOUND"],
    ["a folder that is not there", "GET", "/list?path=none", 404, "FILE_NOT_FOUND"],
    ["an archive of nothing", "GET", "/tar?path=none", 404, "FILE_NOT_FOUND"],
    ["no path", "GET", "", 400, "VALIDATION_ERROR"],
    ["a NUL in a path", "GET", "?path=a%00b", 400, "VALIDATION_ERROR"],
    ["a mode that is none", "PUT", "?path=x&mode=999", 400, "VALIDATION_ERROR"],
    ["two paths", "GET", "?path=a&path=b", 400, "VALIDATION_ERROR"],
  ])("%s is refused with its reason", async (_, method, query, status, code) => {
    await using bed = await ApiBed.open();
    const reply = await bed.call(method, `/api/sandbox/${await bed.sandbox()}/files${query}`);
    expect([reply.status, reply.json.error.code]).toEqual([status, code]);
  });

  test("half an upload leaves no file", async () => {
    await using bed = await ApiBed.open();
    const base = `/api/sandbox/${await bed.sandbox()}/files`;
    let sent = 0;
    const broken = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 1;
        if (sent > 3) controller.error(new Error("the client is gone"));
        else controller.enqueue(new Uint8Array(1000));
      },
    });
    const reply = await bed.call("PUT", `${base}?path=half`, { raw: broken });
    expect(reply.json.error.code).toBe("CANCELLED");
    expect((await bed.get(`${base}?path=half`)).status).toBe(404);
  });

  test("a tree goes out as an archive and comes in again", async () => {
    await using bed = await ApiBed.open();
    const base = `/api/sandbox/${await bed.sandbox()}/files`;
    await bed.call("PUT", `${base}?path=from/x`, { raw: "content" });
    const archive = await bed.fetch("GET", `${base}/tar?path=from`);
    expect(archive.headers.get("content-type")).toBe("application/x-tar");
    const bytes = await archive.arrayBuffer();
    expect((await bed.call("PUT", `${base}/tar?path=to`, { raw: bytes })).status).toBe(200);
    expect((await bed.get(`${base}?path=to/x`)).text).toBe("content");
    const junk = await bed.call("PUT", `${base}/tar?path=to`, { raw: "this is no archive".repeat(100) });
    expect(junk.status).toBeGreaterThanOrEqual(400);
    expect(junk.status).toBeLessThan(500);
  });

  test("S3-5 S3-18 the workspace is written, read and downloaded as the first servers had it", async () => {
    await using bed = await ApiBed.open({ guarded: true });
    const [key, other] = [await bed.key("mine"), await bed.key("theirs")];
    const containerId = await bed.sandbox(key);
    const files = { "src/a.txt": "a", "b.txt": "b" };
    expect((await bed.post("/api/sandbox/files", { containerId, files }, { key })).json).toEqual({
      status: "success",
      containerId,
      files: ["src/a.txt", "b.txt"],
    });
    const base = `/api/sandbox/${containerId}`;
    expect((await bed.get(`${base}/file?filePath=src/a.txt`, { key })).text).toBe("a");
    const archive = await bed.fetch("GET", `${base}/download-all`, { key });
    expect(archive.headers.get("content-disposition")).toContain("workspace.tar");
    const bytes = await archive.arrayBuffer();
    await bed.call("PUT", `${base}/files/tar?path=copy`, { key, raw: bytes });
    expect((await bed.get(`${base}/file?filePath=copy/src/a.txt`, { key })).text).toBe("a");
    expect((await bed.get(`${base}/file?filePath=none`, { key })).json.error.code).toBe("FILE_NOT_FOUND");
    for (const path of ["/etc/passwd", "../x", "a/../../x"]) {
      const written = await bed.post("/api/sandbox/files", { containerId, files: { [path]: "x" } }, { key });
      const read = await bed.get(`${base}/file?filePath=${encodeURIComponent(path)}`, { key });
      for (const reply of [written, read]) expect(reply.json.error.code).toBe("INVALID_PATH");
    }
    const denied = [
      bed.get(`${base}/file?filePath=b.txt`, { key: other }),
      bed.get(`${base}/download-all`, { key: other }),
      bed.post("/api/sandbox/files", { containerId, files }, { key: other }),
    ];
    for (const reply of denied) expect((await reply).status).toBe(404);
  });

  test("changes are watched until the viewer leaves", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    const stream = await bed.fetch("GET", `/api/sandbox/${id}/files/watch?path=.`);
    const seen = readEvents(stream, ({ data }) => JSON.stringify(data).includes("new.txt"));
    let isSeen = false;
    void seen.then(() => {
      isSeen = true;
    });
    await expect
      .poll(
        async () => {
          await bed.call("DELETE", `/api/sandbox/${id}/files?path=new.txt`);
          await bed.call("PUT", `/api/sandbox/${id}/files?path=new.txt`, { raw: String(Math.random()) });
          return isSeen;
        },
        { timeout: 10_000 },
      )
      .toBe(true);
    expect((await seen).at(-1)).toMatchObject({ event: "change" });
  });
});
