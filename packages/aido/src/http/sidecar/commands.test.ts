import { sidecarCommandReply } from "@aido/sdk/schemas";
import { expect, test } from "vitest";
import { SidecarBed } from "../../../test/server/sidecar-bed.ts";

const PATH = "/terminals/commands";

test("S2-24 S2-133 a command answers with exit code, output and duration", async () => {
  await using bed = await SidecarBed.open();
  const reply = await bed.post(PATH, { command: "echo hello; warn oh; pwd" });
  expect(reply.status).toBe(200);
  expect(sidecarCommandReply.parse(reply.json)).toMatchObject({
    success: true,
    result: { exitCode: 0, stdout: "hello\n/home/agent\n", stderr: "oh\n" },
  });
  expect(reply.json.result.duration).toBeGreaterThanOrEqual(0);
});

test("S2-24 a command that fails is a success with its exit code", async () => {
  await using bed = await SidecarBed.open();
  expect((await bed.post(PATH, { command: "exit 42" })).json).toMatchObject({
    success: true,
    result: { exitCode: 42 },
  });
  expect((await bed.post(PATH, { command: "nonsense" })).json.result).toMatchObject({ exitCode: 127 });
});

test("S2-24 a command gets its directory and its variables; what cannot be one is left out", async () => {
  await using bed = await SidecarBed.open();
  await bed.post("/files/write", { path: "sub/a", content: "" });
  const cwd = await bed.post(PATH, { command: "pwd", cwd: "sub" });
  expect(cwd.json.result.stdout).toBe("/home/agent/sub\n");
  const env = {
    A: "x",
    N: 1,
    B: true,
    LIST: [1],
    OBJ: {},
    NONE: null,
    "not a name": "x",
    "1A": "x",
    NUL: "a\0b",
  };
  const { stdout } = (await bed.post(PATH, { command: "env", env })).json.result;
  expect(stdout).toContain("A=x\nN=1\nB=true\n");
  expect(stdout).not.toMatch(/LIST|OBJ|NONE|not a name|1A|NUL/);
});

test("S2-24 a command that takes too long ends with 124 and what it wrote", async () => {
  await using bed = await SidecarBed.open();
  const reply = await bed.post(PATH, { command: "echo first; sleep 600", timeout: 1000 });
  expect(reply.json).toMatchObject({ success: true, result: { exitCode: 124, stdout: "first\n" } });
});

test("more output than one answer carries is cut and said to be", async () => {
  await using bed = await SidecarBed.open();
  const { result } = (await bed.post(PATH, { command: `flood ${9 * 1024 * 1024}` })).json;
  expect(result).toMatchObject({ exitCode: 0, truncated: true });
  expect(result.stdout.length).toBe(8 * 1024 * 1024);
});

test.each<[string, unknown]>([
  ["no command", {}],
  ["an empty command", { command: "" }],
  ["blanks", { command: " \n\t" }],
  ["a NUL", { command: "echo a\0b" }],
  ["a number", { command: 5 }],
  ["a list", { command: ["echo"] }],
  ["a huge command", { command: "x".repeat(200_000) }],
  ["a negative timeout", { command: "true", timeout: -1 }],
  ["a timeout that is text", { command: "true", timeout: "soon" }],
  ["variables that are a list", { command: "true", env: ["A=1"] }],
  ["a directory with a NUL", { command: "true", cwd: "a\0" }],
  ["nothing but text", "hello"],
  ["null", null],
])("S2-133 %s is refused, not a crash", async (_, body) => {
  await using bed = await SidecarBed.open();
  const reply = await bed.post(PATH, body);
  expect([reply.status, reply.json]).toMatchObject([
    400,
    { success: false, error: { code: "VALIDATION_ERROR" } },
  ]);
});

test("a body that is no JSON is refused", async () => {
  await using bed = await SidecarBed.open();
  const reply = await bed.call("POST", PATH, { raw: "{" });
  expect([reply.status, reply.json.success]).toEqual([400, false]);
});

test("a sandbox that dies under a command is an error, and the server goes on", async () => {
  await using bed = await SidecarBed.open();
  const waiting = bed.post(PATH, { command: "sleep 600" });
  await expect.poll(() => bed.api.driver.started(bed.id).length).toBe(1);
  bed.api.driver.crash(bed.id, { exitCode: 137 });
  const reply = await waiting;
  expect([reply.status, reply.json]).toMatchObject([
    503,
    { success: false, error: { code: "CONTAINER_LOST" } },
  ]);
  expect((await bed.api.get("/health")).status).toBe(200);
});
