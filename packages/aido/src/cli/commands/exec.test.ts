import { AidoError, type ExecInfo } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { MemorySink } from "../output/memory-sink.ts";
import { fakeBackend } from "../testing/fake-backend.ts";
import { type FakeContextOptions, fakeContext } from "../testing/fake-context.ts";
import { FakeExec } from "../testing/fake-exec.ts";
import { FakeKeyboard } from "../testing/fake-keyboard.ts";
import { exec } from "./exec.ts";

function setUp(options: FakeContextOptions = {}) {
  const command = new FakeExec();
  const context = fakeContext({ backend: fakeBackend({ execs: command.execs }), ...options });
  return { command, context };
}

test("output goes to its own streams and the exit code is the command's", async () => {
  const { command, context } = setUp();
  command.write("stdout", "out").write("stderr", "err").end({ exitCode: 3 });
  expect(await exec(context, "web", ["sh", "-c", "exit 3"], {})).toBe(3);
  expect(context.stdout.text).toBe("out");
  expect(context.stderr.text).toBe("err");
  expect(context.signals.listening).toBe(0);
});

test.each([
  ["timeout", { exitCode: 143 }, 124],
  ["out_of_memory", { exitCode: 137 }, 137],
  ["out_of_memory", { exitCode: undefined }, 137],
  ["killed", { exitCode: 137 }, 137],
  ["lost", { exitCode: undefined }, 125],
] as [ExecInfo["status"], Partial<ExecInfo>, number][])(
  "a command that ended as %s %o exits with %i",
  async (status, info, code) => {
    const { command, context } = setUp();
    command.end({ status, ...info });
    expect(await exec(context, "web", ["x"], {})).toBe(code);
  },
);

test("with -i standard input is passed on and closed", async () => {
  const stdin = new FakeKeyboard().type("hello ").type("world").end();
  const { command, context } = setUp({ stdin });
  const done = exec(context, "web", ["cat"], { interactive: true });
  await expect.poll(() => command.stdinClosed).toBe(true);
  command.end();
  await done;
  expect(command.stdin).toBe("hello world");
  expect(command.request?.stdin).toBe(true);
});

test("without -i standard input is left alone", async () => {
  const { command, context } = setUp({ stdin: new FakeKeyboard().type("x").end() });
  command.end();
  await exec(context, "web", ["cat"], {});
  expect(command.stdin).toBe("");
  expect(command.request?.stdin).toBe(false);
});

test("a command that ends while its input is still open does not wait for it", async () => {
  const { command, context } = setUp({ stdin: new FakeKeyboard().type("line") });
  command.write("stdout", "done").end({ exitCode: 0 });
  expect(await exec(context, "web", ["head", "-1"], { interactive: true })).toBe(0);
});

test("a real failure to pass input on is reported", async () => {
  const writeStdin = () => Promise.reject(new AidoError("CONTAINER_LOST", "The sandbox is gone"));
  const context = fakeContext({
    stdin: new FakeKeyboard().type("x"),
    backend: fakeBackend({ execs: { ...new FakeExec().execs, writeStdin } }),
  });
  const done = exec(context, "web", ["cat"], { interactive: true });
  await expect(done).rejects.toMatchObject({ code: "CONTAINER_LOST" });
  expect(context.signals.listening).toBe(0);
});

test("a signal is forwarded to the command, which may survive it", async () => {
  const { command, context } = setUp();
  command.onSignal = (signal) => {
    if (signal === "SIGTERM") command.end({ status: "killed", exitCode: 143 });
  };
  const done = exec(context, "web", ["server"], {});
  await command.running;
  context.signals.send("SIGINT");
  context.signals.send("SIGTERM");
  expect(await done).toBe(143);
  expect(command.signals).toEqual(["SIGINT", "SIGTERM"]);
  expect(context.signals.deaths).toEqual([]);
});

test("the second SIGINT ends aido at once", async () => {
  const { command, context } = setUp();
  command.onSignal = () => undefined;
  const done = exec(context, "web", ["stubborn"], {});
  await command.running;
  context.signals.send("SIGINT");
  context.signals.send("SIGINT");
  expect(context.signals.deaths).toEqual(["SIGINT"]);
  command.end();
  await done;
});

test("when nobody reads stdout any more the command is ended, as a local one would be", async () => {
  const stdout = Object.assign(new MemorySink(), {
    write: () => Promise.reject(Object.assign(new Error("EPIPE"), { code: "EPIPE" })),
  });
  const { command, context } = setUp({ stdout });
  command.write("stdout", "y\n");
  expect(await exec(context, "web", ["yes"], {})).toBe(143);
  expect(command.signals).toEqual(["SIGTERM"]);
  expect(context.stderr.text).toBe("");
});

test("--json prints output and end as JSON lines", async () => {
  const { command, context } = setUp({ globals: { json: true } });
  command.write("stdout", "a").end({ exitCode: 7 });
  expect(await exec(context, "web", ["x"], {})).toBe(7);
  const lines = context.stdout.text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines).toEqual([
    { type: "output", stream: "stdout", offset: 0, text: "a" },
    expect.objectContaining({ type: "end", id: "exec1", exitCode: 7, status: "exited" }),
  ]);
});

test("--detach prints the exec's id and returns while it runs", async () => {
  const { context } = setUp();
  expect(await exec(context, "web", ["sleep", "60"], { detach: true })).toBe(0);
  expect(context.stdout.text).toBe("exec1\n");
  expect(context.stderr.text).toContain("aido logs abcd1234 --exec exec1");
});

test("options become the request", async () => {
  const { command, context } = setUp({ env: { TOKEN: "t" } });
  command.end();
  await exec(context, "web", ["make", "-j2"], {
    env: ["A=1", "TOKEN"],
    cwd: "src",
    user: "1000",
    timeout: "30s",
  });
  expect(command.request).toEqual({
    argv: ["make", "-j2"],
    env: { A: "1", TOKEN: "t" },
    cwd: "src",
    user: "1000",
    stdin: false,
    timeoutMs: 30_000,
  });
});

test.each([{ tty: true }, { interactive: true }])("--detach and %o exclude each other", async (other) => {
  const { context } = setUp();
  await expect(exec(context, "web", ["x"], { detach: true, ...other })).rejects.toMatchObject({
    code: "VALIDATION_ERROR",
  });
});
