import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { execReply } from "@aido/sdk/schemas";
import { describe, expect, test } from "vitest";
import { ApiBed } from "../../test/server/api-bed.ts";
import { gate } from "../../test/server/gate.ts";
import { readEvents } from "../../test/server/read-events.ts";

describe("commands over HTTP", () => {
  test("S3-6 S3-16 S3-17 S3-18 S3-19 S3-20 S3-20b S3-28 a command runs after its files are written and answers with its output", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    const reply = await bed.exec(id, ["cat", "main.py", "data/input.txt"], {
      files: { "main.py": "print('hello world')", "data/input.txt": "sample data" },
    });
    expect(reply.status).toBe(200);
    expect(execReply.safeParse(reply.json).error).toBeUndefined();
    expect(reply.json).toMatchObject({
      status: "success",
      stdout: "print('hello world')sample data",
      stderr: "",
      exitCode: 0,
      containerId: id,
    });
    expect(reply.json.duration).toBeGreaterThanOrEqual(0);
    expect(reply.json.id).toMatch(/^[A-Za-z0-9_.-]+$/);
    expect((await bed.exec(id, ["cat", "main.py"])).json.stdout).toBe("print('hello world')");
  });

  test("a command that fails is an answer, not an error of the server", async () => {
    await using bed = await ApiBed.open();
    const reply = await bed.exec(await bed.sandbox(), ["exit", "7"]);
    expect(reply.status).toBe(200);
    expect(reply.json).toMatchObject({ status: "error", exitCode: 7, error: "Process exited with code 7" });
  });

  test("S3-51 a command that takes too long is killed and says so", async () => {
    await using bed = await ApiBed.open();
    const reply = await bed.exec(await bed.sandbox(), ["sleep", "600"], { timeout: 50 });
    expect(reply.status).toBe(200);
    expect(reply.json).toMatchObject({
      status: "error",
      state: "timeout",
      errorCode: "EXECUTION_TIMEOUT",
      error: expect.stringContaining("time"),
    });
  });

  test.each<[string, object, number, string]>([
    ["no command", { command: [] }, 400, "VALIDATION_ERROR"],
    ["a command that is text", { command: "true" }, 400, "VALIDATION_ERROR"],
    ["a NUL", { command: ["a\0b"] }, 400, "VALIDATION_ERROR"],
    ["the id of the history's first entry", { command: ["true"], id: "unknown" }, 400, "VALIDATION_ERROR"],
    ["an id that is a path", { command: ["true"], id: "../x" }, 400, "VALIDATION_ERROR"],
    ["a file above the workspace", { command: ["true"], files: { "../../etc/x": "" } }, 400, "INVALID_PATH"],
    ["an empty file name", { command: ["true"], files: { "": "" } }, 400, "VALIDATION_ERROR"],
    ["a sandbox that is not there", { command: ["true"], containerId: "nope" }, 404, "CONTAINER_NOT_FOUND"],
    ["a program that is not there", { command: ["no-such-program"] }, 400, "EXECUTION_FAILED"],
  ])("S3-42 S3-43 %s is refused", async (_, body, status, code) => {
    await using bed = await ApiBed.open();
    const reply = await bed.post("/api/sandbox/exec", { containerId: await bed.sandbox(), ...body });
    expect(reply.json.error.code).toBe(code);
    expect(reply.status).toBe(status);
  });

  test("a command that is text is answered with how it is to be given", async () => {
    await using bed = await ApiBed.open();
    const { json } = await bed.post("/api/sandbox/exec", { containerId: await bed.sandbox(), command: "ls" });
    expect(json.error.message).toContain(
      'command: a list of a program and its arguments, as in ["sh", "-c",',
    );
  });

  test("a program that cannot be started is refused alike whenever its id is sent, and its state tells why", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    const first = await bed.exec(id, ["no-such-program"], { id: "typo" });
    const { requestId: _, ...told } = first.json.error;
    expect(first.status).toBe(400);
    for (const background of [false, true]) {
      const again = await bed.exec(id, ["no-such-program"], { id: "typo", background });
      expect(again.status).toBe(400);
      expect(again.json.error).toMatchObject(told);
    }
    const state = await bed.get(`/api/sandbox/${id}/exec/typo`);
    expect(execReply.safeParse(state.json).error).toBeUndefined();
    expect(state.json).toMatchObject({
      status: "error",
      exitCode: 127,
      startError: told,
      error: told.message,
    });
    expect((await bed.exec(id, ["true"], { id: "typo" })).json.error.code).toBe("EXECUTION_CONFLICT");
  });

  test("standard input is given whole, and a command that does not read it succeeds all the same", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    expect((await bed.exec(id, ["cat"], { stdin: "héllo" })).json).toMatchObject({ stdout: "héllo" });
    const ignored = await bed.exec(id, ["true"], { stdin: "x".repeat(600_000) });
    expect(ignored.json).toMatchObject({ status: "success" });
  });

  test("the environment, the working directory and separate streams arrive", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    expect((await bed.exec(id, ["env"], { env: { COLOUR: "red" } })).json.stdout).toContain("COLOUR=red\n");
    await bed.post(`/api/sandbox/${id}/files/mkdir`, { path: "sub" });
    expect((await bed.exec(id, ["pwd"], { cwd: "sub" })).json.stdout).toBe("/home/sandbox/sub\n");
    expect((await bed.exec(id, ["warn", "careful"])).json).toMatchObject({ stdout: "", stderr: "careful\n" });
  });

  test("the same id twice runs once and gives the same result, files and input included", async () => {
    let runs = 0;
    await using bed = await ApiBed.open({
      programs: {
        once: async (process) => {
          runs += 1;
          for await (const chunk of process.stdin) await process.stdout(chunk);
          return 0;
        },
      },
    });
    const id = await bed.sandbox();
    const more = { id: "job-1", stdin: "input", files: { f: "first" } };
    const first = await bed.exec(id, ["once"], more);
    await bed.post("/api/sandbox/exec", { containerId: id, command: ["put", "f", "second"] });
    const second = await bed.exec(id, ["once"], more);
    expect(second.json).toEqual(first.json);
    expect(first.json.stdout).toBe("input");
    expect(runs).toBe(1);
    expect((await bed.exec(id, ["cat", "f"])).json.stdout).toBe("second\n");
    const other = await bed.exec(id, ["true"], { id: "job-1" });
    expect(other.status).toBe(409);
    expect(other.json.error.code).toBe("EXECUTION_CONFLICT");
  });

  test("a repeated request waits for the one that runs and returns its output", async () => {
    let runs = 0;
    const { released, release } = gate();
    await using bed = await ApiBed.open({
      programs: {
        slow: async (process) => {
          runs += 1;
          await process.stdout("begun ");
          await released;
          await process.stdout("done");
          return 3;
        },
      },
    });
    const id = await bed.sandbox();
    const all = Promise.all([1, 2, 3].map(() => bed.exec(id, ["slow"], { id: "same" })));
    await expect.poll(() => runs).toBe(1);
    const late = bed.exec(id, ["slow"], { id: "same" });
    release();
    for (const reply of [...(await all), await late]) {
      expect(reply.json).toMatchObject({ id: "same", stdout: "begun done", exitCode: 3, status: "error" });
    }
    expect(runs).toBe(1);
  });

  test("S3-82 a command in the background is watched, fed, signalled and read by offset", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    const started = await bed.exec(id, ["cat"], { background: true, stdin: true });
    expect(started.status).toBe(202);
    expect(started.json).toMatchObject({ status: "running", exitCode: null });
    const path = `/api/sandbox/${id}/exec/${started.json.id}`;
    await bed.call("POST", `${path}/stdin`, { raw: "abc" });
    await expect.poll(async () => (await bed.get(path)).json.stdout).toBe("abc");
    await bed.call("POST", `${path}/stdin?close=true`, { raw: "def" });
    const ended = await bed.get(`${path}?wait=10000&stdoutOffset=3`);
    expect(ended.json).toMatchObject({ status: "success", stdout: "def", stdoutOffset: 6, stdoutBytes: 6 });
    expect((await bed.get(`${path}?encoding=base64`)).json.stdout).toBe(
      Buffer.from("abcdef").toString("base64"),
    );
    const late = await bed.call("POST", `${path}/stdin`, { raw: "x" });
    expect(late.status).toBe(409);
    expect((await bed.call("POST", `${path}/stdin?close=maybe`, { raw: "x" })).status).toBe(400);
    expect((await bed.get(`/api/sandbox/${id}/exec`)).json.execs).toMatchObject([{ id: started.json.id }]);
    expect((await bed.get(`/api/sandbox/${id}/exec/nope`)).json.error.code).toBe("EXECUTION_NOT_FOUND");
  });

  test("commands are listed in pages, newest first, over HTTP and by the client", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    for (const name of ["a", "b", "c"]) await bed.exec(id, ["true"], { id: name });
    const list = async (query: string) =>
      (await bed.get(`/api/sandbox/${id}/exec${query}`)).json.execs.map((exec: { id: string }) => exec.id);
    expect(await list("")).toEqual(["c", "b", "a"]);
    expect(await list("?limit=2")).toEqual(["c", "b"]);
    expect(await list("?limit=2&before=b")).toEqual(["a"]);
    expect(await list("?before=nope")).toEqual([]);
    for (const query of ["?limit=0", "?limit=1001", "?limit=x", "?before=../x", "?after=b"]) {
      expect((await bed.get(`/api/sandbox/${id}/exec${query}`)).status).toBe(400);
    }
    const page = await bed.client().execs.list(id, { limit: 1, before: "c" });
    expect(page.map((exec) => exec.id)).toEqual(["b"]);
  });

  test("waiting for a command that goes on ends with its state", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    const { json } = await bed.exec(id, ["sleep", "600"], { background: true });
    expect((await bed.get(`/api/sandbox/${id}/exec/${json.id}?wait=20`)).json).toMatchObject({
      status: "running",
    });
    expect((await bed.post(`/api/sandbox/${id}/exec/${json.id}/signal`, { signal: "KILL" })).status).toBe(
      200,
    );
    const killed = await bed.get(`/api/sandbox/${id}/exec/${json.id}?wait=10000`);
    expect(killed.json).toMatchObject({ status: "error", state: "killed" });
    expect((await bed.post(`/api/sandbox/${id}/exec/${json.id}/signal`, { signal: "NO" })).status).toBe(400);
  });

  test("text that goes on is not cut within a character", async () => {
    const { released, release } = gate();
    await using bed = await ApiBed.open({
      programs: {
        euro: async (process) => {
          await process.stdout(Buffer.from([0x61, 0xe2, 0x82]));
          await released;
          await process.stdout(Buffer.from([0xac]));
          return 0;
        },
      },
    });
    const id = await bed.sandbox();
    const { json } = await bed.exec(id, ["euro"], { background: true });
    const path = `/api/sandbox/${id}/exec/${json.id}`;
    await expect.poll(async () => (await bed.get(path)).json.stdoutBytes).toBe(3);
    expect((await bed.get(path)).json).toMatchObject({ stdout: "a", stdoutOffset: 1 });
    release();
    expect((await bed.get(`${path}?wait=10000&stdoutOffset=1`)).json).toMatchObject({
      stdout: "€",
      stdoutOffset: 4,
    });
  });

  test("a stream of events gives each byte once and goes on where it was left", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    const { json } = await bed.exec(id, ["flood", "300000"], { background: true });
    const path = `/api/sandbox/${id}/exec/${json.id}/stream`;
    const events = await readEvents(await bed.fetch("GET", path));
    const bytes = Buffer.concat(
      events.filter(({ event }) => event === "output").map(({ data }) => Buffer.from(data.data, "base64")),
    );
    expect(bytes).toHaveLength(300_000);
    expect(events.at(-1)).toMatchObject({ event: "end", data: { status: "success", stdoutBytes: 300_000 } });
    const resumed = await readEvents(
      await bed.fetch("GET", path, { headers: { "last-event-id": "299984:0" } }),
    );
    expect(resumed.map(({ event }) => event)).toEqual(["output", "end"]);
    expect(Buffer.from(resumed[0]?.data.data, "base64")).toEqual(bytes.subarray(299_984));
  });

  test("a viewer that leaves ends its stream, not the command", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    const { json } = await bed.exec(id, ["stubborn"], { background: true });
    const stream = await bed.fetch("GET", `/api/sandbox/${id}/exec/${json.id}/stream`);
    const reader = stream.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    expect((await bed.get(`/api/sandbox/${id}/exec/${json.id}`)).json.status).toBe("running");
    bed.draining.abort();
  });

  test("the output of one answer is bounded and the rest is read by offset", async () => {
    await using bed = await ApiBed.open();
    const total = 9 * 1024 * 1024;
    const id = await bed.sandbox();
    const reply = await bed.exec(id, ["flood", String(total)]);
    expect(reply.json).toMatchObject({ truncated: true, stdoutBytes: total, stdoutOffset: 8 * 1024 * 1024 });
    const rest = await bed.get(
      `/api/sandbox/${id}/exec/${reply.json.id}?stdoutOffset=${reply.json.stdoutOffset}`,
    );
    expect(rest.json.stdoutOffset).toBe(total);
    expect(rest.json.truncated).toBeUndefined();
  });

  test("a command whose output cannot be kept is ended, and its answer says so", async () => {
    await using bed = await ApiBed.open();
    const id = await bed.sandbox();
    // Where its output would be written nothing can be.
    mkdirSync(join(bed.root, "data", "sandboxes", id, "execs", "loud", "stdout"), { recursive: true });
    const { status, json } = await bed.exec(id, ["flood", "1000000"], { id: "loud" });
    expect([status, json.status]).toEqual([200, "error"]);
    expect(json.error).toContain("could not be kept");
    expect((await bed.exec(id, ["true"])).json.status).toBe("success");
  });

  test("a path for WebSockets says so to others", async () => {
    await using bed = await ApiBed.open();
    const reply = await bed.get(`/api/sandbox/${await bed.sandbox()}/exec/x/ws`);
    expect(reply.status).toBe(400);
    expect(reply.json.error.message).toContain("WebSocket");
  });
});
