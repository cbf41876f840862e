import { createHash } from "node:crypto";
import { sidecarReadReply, sidecarWriteReply } from "@aido/sdk/schemas";
import { expect, test } from "vitest";
import { SidecarBed } from "../../../test/server/sidecar-bed.ts";
import { workspacePath } from "./workspace-path.ts";

const sha256 = (bytes: string | Buffer) => createHash("sha256").update(bytes).digest("hex");

test("S2-5 S2-133 a file is written with its hash and size, and read back", async () => {
  await using bed = await SidecarBed.open();
  const content = "héllo\n";
  const written = await bed.post("/files/write", { path: "/home/agent/deep/er/a.txt", content });
  expect(sidecarWriteReply.parse(written.json).data).toEqual({
    path: "deep/er/a.txt",
    hash: sha256(content),
    size: 7,
  });
  const read = await bed.post("/files/read", { path: "deep/er/a.txt" });
  expect(sidecarReadReply.parse(read.json).data).toMatchObject({ content, hash: sha256(content), size: 7 });
  const { stdout } = (await bed.post("/terminals/commands", { command: "cat deep/er/a.txt" })).json.result;
  expect(stdout).toBe(content);
});

test("bytes that are no text travel as base64, both ways", async () => {
  await using bed = await SidecarBed.open();
  const bytes = Buffer.from([0, 255, 254, 10]);
  const content = bytes.toString("base64");
  const written = await bed.post("/files/write", { path: "b", content, encoding: "base64" });
  expect(written.json.data).toMatchObject({ hash: sha256(bytes), size: 4 });
  const read = await bed.post("/files/read", { path: "b", encoding: "base64" });
  expect(read.json.data).toMatchObject({ content, encoding: "base64" });
});

test.each([
  "/etc/passwd",
  "../x",
  "a/../../x",
  "/home/agent/../other/x",
  "/home/agentx/x",
  "/",
  "..",
  "/proc/1/mem",
])("S2-133 %s is outside the workspace", async (path) => {
  await using bed = await SidecarBed.open();
  for (const verb of ["write", "read"]) {
    const reply = await bed.post(`/files/${verb}`, { path, content: "x" });
    expect([reply.status, reply.json]).toMatchObject([403, { success: false, error: { code: "FORBIDDEN" } }]);
  }
});

test("names that only look like a way out are names", () => {
  expect(workspacePath("/home/agent", "..data/x")).toBe("..data/x");
  expect(workspacePath("/home/agent", "/home/agent")).toBe(".");
  expect(workspacePath("/home/agent", "./a/../b")).toBe("b");
});

test.each<[string, object, number, string]>([
  ["a file that is not there", { path: "none" }, 404, "FILE_NOT_FOUND"],
  ["an empty path", { path: "" }, 400, "VALIDATION_ERROR"],
  ["a NUL", { path: "a\0b" }, 400, "VALIDATION_ERROR"],
  ["no path", {}, 400, "VALIDATION_ERROR"],
  ["a path that is too long", { path: "x".repeat(5000) }, 400, "VALIDATION_ERROR"],
])("S2-133 reading %s is refused", async (_, body, status, code) => {
  await using bed = await SidecarBed.open();
  const reply = await bed.post("/files/read", body);
  expect([reply.status, reply.json]).toMatchObject([status, { success: false, error: { code } }]);
});

test("content that is not what it says is refused", async () => {
  await using bed = await SidecarBed.open();
  for (const body of [
    { content: 5 },
    {},
    { content: "%%%", encoding: "base64" },
    { content: "x", encoding: "latin1" },
  ]) {
    expect((await bed.post("/files/write", { path: "a", ...body })).status).toBe(400);
  }
});

test("a file that is larger than an answer may be is refused", async () => {
  await using bed = await SidecarBed.open({ maxBodyBytes: 1000 });
  await bed.api.driver.files(bed.id).writeFile("/home/agent", "big", Buffer.alloc(2000));
  const reply = await bed.post("/files/read", { path: "big" });
  expect([reply.status, reply.json.error.code]).toEqual([413, "PAYLOAD_TOO_LARGE"]);
});
