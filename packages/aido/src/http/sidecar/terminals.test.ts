import { sidecarTerminalReply, sidecarTerminalsReply } from "@aido/sdk/schemas";
import { expect, test } from "vitest";
import { eventsOf, type ReadEvent, readEvents } from "../../../test/server/read-events.ts";
import { SidecarBed } from "../../../test/server/sidecar-bed.ts";

const textOf = (events: readonly ReadEvent[]) =>
  events
    .filter(({ event }) => event === "output")
    .map(({ data }) => data.data)
    .join("");

test("S2-133 a terminal is opened, listed and looked at", async () => {
  await using bed = await SidecarBed.open();
  const opened = await bed.post("/terminals", { name: 'my "one" $(x)' });
  expect(opened.status).toBe(201);
  const { data } = sidecarTerminalReply.parse(opened.json);
  expect(data).toMatchObject({ name: 'my "one" $(x)', shell: "/bin/sh", isRunning: true });
  expect(data.streamUrl).toBe(`/terminals/${data.sessionId}/stream`);
  const list = sidecarTerminalsReply.parse((await bed.get("/terminals")).json);
  expect(list.data.map(({ sessionId }) => sessionId)).toEqual([data.sessionId]);
  const one = await bed.get(`/terminals/${data.sessionId}`);
  expect(one.json.data).toMatchObject({ sessionId: data.sessionId, isRunning: true, exitCode: null });
});

test("S2-133 what is typed is run; the stream has output and then the exit", async () => {
  await using bed = await SidecarBed.open();
  const id = await bed.terminal();
  const stream = await bed.fetch("GET", `/terminals/${id}/stream`);
  expect(stream.headers.get("content-type")).toBe("text/event-stream");
  expect((await bed.post(`/terminals/${id}/execute`, { command: "echo typed" })).json).toEqual({
    success: true,
  });
  await bed.post(`/terminals/${id}/input`, { data: "exit 3\n" });
  const events = await readEvents(stream);
  expect(textOf(events)).toBe("$ echo typed\ntyped\n$ exit 3\n");
  expect(events.at(-1)).toMatchObject({ event: "exit", data: { code: 3, signal: null } });
});

test("S2-133 a stream goes on at an offset or after the last event, each byte once", async () => {
  await using bed = await SidecarBed.open();
  const id = await bed.terminal();
  await bed.post(`/terminals/${id}/execute`, { command: "echo grüße" });
  await bed.post(`/terminals/${id}/execute`, { command: "exit 0" });
  const whole = await readEvents(await bed.fetch("GET", `/terminals/${id}/stream`));
  const all = Buffer.from(textOf(whole));
  for (const offset of [0, 5, 13, all.length, all.length + 100]) {
    const rest = await readEvents(
      await bed.fetch("GET", `/terminals/${id}/stream?offset=${offset}&encoding=base64`),
    );
    const bytes = rest
      .filter(({ event }) => event === "output")
      .map(({ data }) => Buffer.from(data.data, "base64"));
    expect(Buffer.concat(bytes).toString()).toBe(all.subarray(offset).toString());
    expect(rest.at(-1)?.event).toBe("exit");
  }
  const headers = { "last-event-id": whole.filter(({ event }) => event === "output").at(-1)?.id ?? "" };
  const after = await readEvents(await bed.fetch("GET", `/terminals/${id}/stream`, { headers }));
  expect(after.map(({ event }) => event)).toEqual(["exit"]);
});

test("text is not cut within a character", async () => {
  const bytes = Buffer.from("a€b𝄞c");
  const programs = {
    slow: async (process: { stdout(data: Uint8Array): Promise<void>; sleep(ms: number): Promise<void> }) => {
      for (const byte of bytes) {
        await process.stdout(Uint8Array.of(byte));
        await process.sleep(5);
      }
      await process.stdout(Uint8Array.of(0xe2, 0x82));
    },
  };
  await using bed = await SidecarBed.open({ programs: { ...programs, sh: programs.slow } });
  const id = await bed.terminal();
  const events = await readEvents(await bed.fetch("GET", `/terminals/${id}/stream`));
  expect(textOf(events)).toBe("a€b𝄞c\ufffd");
  const pieces = events.filter(({ event }) => event === "output");
  expect(pieces.slice(0, -1).every(({ data }) => !data.data.includes("\ufffd"))).toBe(true);
  expect(pieces.at(-1)?.id).toBe(String(bytes.length + 2));
});

test("S2-133 a terminal that has ended takes nothing more: 409 TERMINAL_CLOSED", async () => {
  await using bed = await SidecarBed.open();
  const id = await bed.terminal();
  await bed.post(`/terminals/${id}/execute`, { command: "exit 0" });
  await expect.poll(async () => (await bed.get(`/terminals/${id}`)).json.data.isRunning).toBe(false);
  for (const [method, path, body] of [
    ["POST", "/execute", { command: "true" }],
    ["POST", "/input", { data: "x" }],
    ["PATCH", "", { cols: 100, rows: 30 }],
  ] as const) {
    const reply = await bed.call(method, `/terminals/${id}${path}`, { body });
    expect([reply.status, reply.json]).toMatchObject([
      409,
      { success: false, error: { code: "TERMINAL_CLOSED" } },
    ]);
  }
  expect((await bed.get(`/terminals/${id}`)).json.data).toMatchObject({ isRunning: false, exitCode: 0 });
  expect((await bed.get("/terminals")).json.data).toEqual([]);
});

test("S2-133 a terminal is resized, and closed with all it runs", async () => {
  await using bed = await SidecarBed.open();
  const id = await bed.terminal({ cols: 100, rows: 30 });
  expect(bed.api.driver.started(bed.id).at(-1)).toMatchObject({ rows: 30, cols: 100 });
  expect((await bed.call("PATCH", `/terminals/${id}`, { body: { cols: 120, rows: 40 } })).json).toEqual({
    success: true,
  });
  await bed.post(`/terminals/${id}/execute`, { command: "sleep 600" });
  expect((await bed.call("DELETE", `/terminals/${id}`)).json).toEqual({ success: true });
  expect((await bed.get("/terminals")).json.data).toEqual([]);
  expect((await bed.get(`/terminals/${id}`)).status).toBe(404);
  expect((await bed.call("DELETE", `/terminals/${id}`)).status).toBe(404);
});

test.each([
  ["GET", ""],
  ["GET", "/stream"],
  ["POST", "/execute"],
  ["POST", "/input"],
  ["PATCH", ""],
  ["DELETE", ""],
])("S2-133 %s …%s of a terminal that is not there is 404", async (method, path) => {
  await using bed = await SidecarBed.open();
  const exec = await bed.api.exec(bed.id, ["sleep", "600"], {
    background: true,
    id: "term_00000000000000aa",
  });
  for (const id of ["term_0000000000000000", exec.json.id, "nope", "..%2f..%2fetc", "exec_1"]) {
    const body = { command: "x", data: "x", cols: 80, rows: 24 };
    const reply = await bed.call(
      method,
      `/terminals/${id}${path}`,
      method === "GET" || method === "DELETE" ? {} : { body },
    );
    expect([reply.status, reply.json]).toMatchObject([
      404,
      { success: false, error: { code: "TERMINAL_NOT_FOUND" } },
    ]);
  }
});

test.each<[string, object]>([
  ["no columns", { cols: 0 }],
  ["too many rows", { rows: 100_000 }],
  ["half a column", { cols: 1.5 }],
  ["a name with a NUL", { name: "\0" }],
  ["a shell that is no path", { shell: "bash -c id" }],
  ["a long title", { title: "x".repeat(1000) }],
])("%s is refused", async (_, body) => {
  await using bed = await SidecarBed.open();
  const reply = await bed.post("/terminals", body);
  expect([reply.status, reply.json.success]).toEqual([400, false]);
});

test("a shell that is not there is told, and leaves no terminal", async () => {
  await using bed = await SidecarBed.open({ programs: { sh: async () => 127 } });
  const id = await bed.terminal({ shell: "/bin/none" });
  await expect.poll(async () => (await bed.get(`/terminals/${id}`)).json.data.exitCode).toBe(127);
  expect((await bed.get("/terminals")).json.data).toEqual([]);
});

test("a sandbox that dies ends the stream with an error", async () => {
  await using bed = await SidecarBed.open();
  const id = await bed.terminal();
  const stream = await bed.fetch("GET", `/terminals/${id}/stream`);
  bed.api.driver.crash(bed.id, { exitCode: 137 });
  const last = (await readEvents(stream)).at(-1);
  expect(last).toMatchObject({ event: "error", data: { message: expect.any(String) } });
});

test("a viewer that leaves ends only its own stream", async () => {
  await using bed = await SidecarBed.open();
  const id = await bed.terminal();
  const left = new AbortController();
  const stream = await bed.fetch("GET", `/terminals/${id}/stream`, { signal: left.signal });
  for await (const { event } of eventsOf(stream)) if (event === "output") break;
  left.abort();
  await bed.post(`/terminals/${id}/execute`, { command: "exit 0" });
  const events = await readEvents(await bed.fetch("GET", `/terminals/${id}/stream`));
  expect(events.at(-1)?.event).toBe("exit");
});

test("a terminal and a command start a stopped sandbox that comes back when used, and no other", async () => {
  await using plain = await SidecarBed.open();
  await plain.api.client().sandboxes.stop(plain.id);
  expect((await plain.post("/terminals", {})).status).toBe(409);

  await using bed = await SidecarBed.open({ request: { autoResume: true } });
  await bed.api.client().sandboxes.stop(bed.id);
  expect((await bed.post("/terminals", {})).status).toBe(201);
  expect(await bed.api.store.sandboxes.get(bed.id)).toMatchObject({ state: "running" });
  await bed.api.client().sandboxes.stop(bed.id);
  expect(await bed.client().exec({ command: "echo back" })).toMatchObject({ exitCode: 0, stdout: "back\n" });
});
