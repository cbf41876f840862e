import { type HttpAido, type RunFile, type RunSpec, type UpRequest, writeFramedBody } from "@aido/sdk";
import { runReply, serverReply, summaryReply } from "@aido/sdk/schemas";
import { describe, expect, test } from "vitest";
import { interpreter } from "../../test/run/fake-host.ts";
import { ApiBed, type ApiBedOptions } from "../../test/server/api-bed.ts";

const SPEC: RunSpec = {
  name: "demo",
  runtime: "bash",
  ttlMs: 60_000,
  inputs: [],
  outputs: [],
  limits: {},
  timeoutMs: 0,
  env: {},
  network: "none",
  steps: [],
};

const file = (path: string, text: string): RunFile => ({
  path,
  async *content() {
    yield Buffer.from(text);
  },
});
const up = (spec: Partial<RunSpec> = {}, more: Partial<UpRequest> = {}): UpRequest => ({
  spec: { ...SPEC, ...spec },
  specText: "name: demo\n",
  inputs: [],
  ...more,
});
const open = (options: ApiBedOptions = {}) => ApiBed.open({ programs: { bash: interpreter }, ...options });

async function text(chunks: AsyncIterable<{ data: Uint8Array } | Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk instanceof Uint8Array ? chunk : chunk.data);
  return Buffer.concat(parts).toString();
}

async function all(parts: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const kept: Uint8Array[] = [];
  for await (const part of parts) kept.push(part);
  return kept;
}

async function run(aido: HttpAido, script: string): Promise<string> {
  const { id } = await aido.runs.up(up());
  await aido.runs.start({ sandbox: id, task: file("t.sh", script) });
  await aido.runs.wait(id);
  return id;
}

describe("runs over HTTP", () => {
  test("a task with inputs runs, and its record, output, summary and files can be had", async () => {
    await using bed = await open();
    const aido = bed.client();
    const inputs = [file("data/a.txt", "input\n"), file("empty.txt", "")];
    const { id, status } = await aido.runs.up(up({ env: { WHO: "me" } }, { inputs }));
    expect(status).toBe("pending");
    expect(await aido.runs.summary(id)).toBeUndefined();
    const task = file("t.sh", "env WHO\nread /inputs/data/a.txt\nerr bad\nwrite /outputs/r.txt done\nexit 3");
    expect(await aido.runs.start({ sandbox: id, task })).toMatchObject({ status: "running", task: "t.sh" });
    expect(await text(aido.runs.logs({ sandbox: id, follow: true }))).toContain("me\ninput\n");
    const summary = await aido.runs.wait(id);
    expect(summary).toMatchObject({ status: "failed", exitCode: 3, outputFiles: ["r.txt"] });
    expect(await aido.runs.summary(id)).toEqual(summary);
    expect(await text(aido.runs.output("r.txt", id))).toBe("done\n");
    expect(await aido.runs.get(id)).toEqual(await bed.aido.runs.get(id));
    const wire = await bed.get(`/api/runs/${id}`);
    expect(runReply.strict().safeParse(wire.json).error).toBeUndefined();
    const ended = await bed.get(`/api/runs/${id}/summary`);
    expect(summaryReply.strict().safeParse(ended.json).error).toBeUndefined();
  });

  test("steps run in order, and output is read on from any step and offset", async () => {
    await using bed = await open();
    const aido = bed.client();
    const steps = ["one", "two"].map((name) => ({ name, task: `${name}.sh`, timeoutMs: 0, env: {} }));
    const tasks = [file("one.sh", "out first"), file("two.sh", "out second\nerr oops")];
    const { id } = await aido.runs.up(up({ steps }, { tasks }));
    await aido.runs.start({ sandbox: id });
    expect(await aido.runs.wait(id)).toMatchObject({ status: "completed" });
    expect(await text(aido.runs.logs({ sandbox: id }))).toMatch(/^first\n/);
    const from = { step: "two", stdoutOffset: 3, stderrOffset: 0 };
    const rest: string[] = [];
    for await (const chunk of aido.runs.logs({ sandbox: id, from })) {
      rest.push(`${chunk.step}/${chunk.stream}@${chunk.offset}:${Buffer.from(chunk.data)}`);
    }
    expect(rest.sort()).toEqual(["two/stderr@0:oops\n", "two/stdout@3:ond\n"]);
    const wrong = { step: "three", stdoutOffset: 0, stderrOffset: 0 };
    await expect(text(aido.runs.logs({ sandbox: id, from: wrong }))).rejects.toMatchObject({
      code: "VALIDATION_ERROR",
    });
  });

  test("the output of one run is never continued with that of the next", async () => {
    await using bed = await open();
    const aido = bed.client();
    const id = await run(aido, "out first");
    const { startedAt } = await aido.runs.get(id);
    const path = `/api/runs/${id}/logs?stdoutOffset=3&startedAt=${startedAt}`;
    expect((await bed.get(path)).text).toContain("event: end");
    await expect.poll(() => new Date().toISOString()).not.toBe(startedAt);
    await aido.runs.start({ sandbox: id, task: file("t.sh", "out second") });
    await aido.runs.wait(id);
    expect((await bed.get(path)).json.error.code).toBe("EXECUTION_CONFLICT");
    expect(await text(aido.runs.logs({ sandbox: id }))).toBe("second\n");
  });

  test("cancel ends a run as failed", async () => {
    await using bed = await open();
    const aido = bed.client();
    const { id } = await aido.runs.up(up());
    await aido.runs.start({ sandbox: id, task: file("t.sh", "sleep 3600") });
    await aido.runs.cancel(id);
    expect(await aido.runs.wait(id)).toMatchObject({ status: "failed" });
    await aido.runs.cancel(id);
  });

  test("a wait ends when the server shuts down, and the run goes on", async () => {
    await using bed = await open();
    const aido = bed.client();
    const { id } = await aido.runs.up(up());
    await aido.runs.start({ sandbox: id, task: file("t.sh", "sleep 3600") });
    const waiting = bed.get(`/api/runs/${id}/summary?wait=60000`);
    bed.draining.abort();
    expect((await waiting).json).toEqual({ summary: null });
    expect(await bed.aido.runs.get(id)).toMatchObject({ status: "running" });
  });

  test("errors are those of core", async () => {
    await using bed = await open();
    const aido = bed.client();
    await expect(aido.runs.get()).rejects.toMatchObject({ code: "CONTAINER_NOT_FOUND" });
    const { id } = await aido.runs.up(up());
    await expect(aido.runs.wait(id)).rejects.toMatchObject({ code: "EXECUTION_CONFLICT" });
    await expect(aido.runs.start({ sandbox: id })).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
    const plain = await bed.sandbox();
    await expect(aido.runs.get(plain)).rejects.toMatchObject({ code: "EXECUTION_CONFLICT" });
    const done = await run(aido, "write /outputs/r.txt x");
    for (const path of ["../run.json", "none.txt", "/etc/passwd", "r.txt/../../run.json"]) {
      await expect(text(aido.runs.output(path, done))).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
    }
  });

  test("the server says what it can do", async () => {
    await using bed = await open();
    const info = await bed.client().info();
    expect(serverReply.strict().safeParse(info).error).toBeUndefined();
    expect(info).toMatchObject({ version: "1.2.3", driver: "fake" });
  });
});

describe("whose runs", () => {
  test("a run of somebody else is not there, by no name and as no newest", async () => {
    await using bed = await open({ guarded: true });
    const [alice, bob] = [bed.client(await bed.key("alice")), bed.client(await bed.key("bob"))];
    const theirs = await run(alice, "out secret");
    const gone = { code: "CONTAINER_NOT_FOUND" };
    for (const reference of [theirs, theirs.slice(0, 6), "demo", undefined]) {
      await expect(bob.runs.get(reference)).rejects.toMatchObject(gone);
      await expect(bob.runs.summary(reference)).rejects.toMatchObject(gone);
      await expect(bob.runs.cancel(reference)).rejects.toMatchObject(gone);
      await expect(text(bob.runs.logs({ sandbox: reference }))).rejects.toMatchObject(gone);
      await expect(text(bob.runs.output("stdout.log", reference))).rejects.toMatchObject(gone);
      const start = { sandbox: reference, task: file("t.sh", "out mine") };
      await expect(bob.runs.start(start)).rejects.toMatchObject(gone);
    }
    const own = await run(bob, "out mine");
    expect((await bob.runs.get()).id).toBe(own);
    expect((await bob.runs.get("demo")).id).toBe(own);
    expect((await alice.runs.get()).id).toBe(theirs);
    const admin = bed.client(await bed.key("root", { scopes: ["admin", "read", "write"] }));
    expect((await admin.runs.get(theirs)).id).toBe(theirs);
  });

  test("the host's network and full privileges are for administrators", async () => {
    const capabilities = { networks: ["none", "bridge", "host"] as const, privileged: true };
    await using bed = await open({ guarded: true, capabilities });
    const writer = bed.client(await bed.key("ci"));
    const forbidden = { code: "FORBIDDEN", hint: expect.stringContaining("admin") };
    await expect(writer.runs.up(up({ network: "host" }))).rejects.toMatchObject(forbidden);
    await expect(writer.sandboxes.create({ network: "host" })).rejects.toMatchObject(forbidden);
    await expect(writer.sandboxes.create({ privileged: true })).rejects.toMatchObject(forbidden);
    const { id } = await writer.runs.up(up());
    const start = { sandbox: id, task: file("t.sh", "out x") };
    await expect(writer.runs.start({ ...start, hostNetwork: true })).rejects.toMatchObject(forbidden);
    await expect(writer.runs.start({ ...start, privileged: true })).rejects.toMatchObject(forbidden);
    expect(await writer.sandboxes.list()).toHaveLength(1);
    const admin = bed.client(await bed.key("root", { scopes: ["admin", "read", "write"] }));
    expect(await admin.runs.start({ ...start, hostNetwork: true })).toMatchObject({ status: "running" });
    await admin.runs.wait(id);
    expect((await admin.sandboxes.create({ privileged: true })).state).toBe("running");
  });

  test("sandboxes for runs count as sandboxes", async () => {
    await using bed = await open({ guarded: true, maxSandboxes: 1 });
    const aido = bed.client(await bed.key("ci"));
    await aido.runs.up(up());
    await expect(aido.runs.up(up())).rejects.toMatchObject({ code: "QUOTA_EXCEEDED" });
  });
});

describe("bodies that are not as they should be", () => {
  const evil: [string, object][] = [
    ["an input above the directory", { inputs: [{ path: "../../x" }] }],
    ["an absolute input", { inputs: [{ path: "/etc/x" }] }],
    ["a task above the directory", { tasks: [{ path: "../x.sh" }] }],
    [
      "a step whose name is a path",
      { spec: { ...SPEC, steps: [{ name: "../x", task: "t", timeoutMs: 0, env: {} }] } },
    ],
    ["a name with a slash", { spec: { ...SPEC, name: "a/b" } }],
    ["a variable that is none", { spec: { ...SPEC, env: { "A=B": "x" } } }],
    ["a label of aido's own", { labels: { "dev.aido.owner": "key:other" } }],
    ["a field nobody knows", { privileged: true }],
  ];
  test.each(evil)("%s is refused and makes nothing", async (_, change) => {
    await using bed = await open();
    const request = { spec: SPEC, specText: "", inputs: [], tasks: [], ...change };
    const raw = Buffer.concat(await all(writeFramedBody(request, [])));
    const reply = await bed.call("POST", "/api/runs", { raw });
    expect(reply.status).toBe(400);
    expect(reply.json.error.code).toBe("VALIDATION_ERROR");
    expect(await bed.aido.sandboxes.list({ states: ["pending", "running", "stopped", "deleted"] })).toEqual(
      [],
    );
  });

  test("a body that ends in the middle of a file leaves no sandbox", async () => {
    await using bed = await open();
    const request = { spec: SPEC, specText: "", inputs: [{ path: "a" }], tasks: [] };
    const whole = Buffer.concat(await all(writeFramedBody(request, [file("a", "0123456789")])));
    const reply = await bed.call("POST", "/api/runs", { raw: whole.subarray(0, -6) });
    expect(reply.status).toBe(400);
    expect(await bed.aido.sandboxes.list()).toEqual([]);
    expect(await bed.aido.sandboxes.list({ states: ["deleted"] })).toHaveLength(1);
  });

  test.each([
    ["nothing", new Uint8Array(0), 400],
    ["a huge first frame", Uint8Array.from([0xff, 0xff, 0xff, 0xff]), 413],
    ["no JSON", Uint8Array.from([0, 0, 0, 1, 65]), 400],
  ])("%s as a body is refused", async (_, raw, status) => {
    await using bed = await open();
    for (const path of ["/api/runs", "/api/runs/start"]) {
      expect((await bed.call("POST", path, { raw })).status).toBe(status);
    }
  });
});
