import { AidoError } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { fakeBackend } from "../testing/fake-backend.ts";
import { type FakeContextOptions, fakeContext } from "../testing/fake-context.ts";
import { FakeExec } from "../testing/fake-exec.ts";
import { FakeKeyboard } from "../testing/fake-keyboard.ts";
import { exec } from "./exec.ts";
import { shell } from "./shell.ts";

function setUp(options: FakeContextOptions = {}) {
  const command = new FakeExec();
  const stdin = new FakeKeyboard({ terminal: true });
  const context = fakeContext({ backend: fakeBackend({ execs: command.execs }), stdin, ...options });
  return { command, context };
}

test("a shell gets raw keys, the terminal's size and kind, and its exit code comes back", async () => {
  const { command, context } = setUp({ env: { TERM: "screen-256color" } });
  context.signals.size = { rows: 50, cols: 132 };
  const done = shell(context, "web", {});
  await command.running;
  context.stdin.type("\u0003exit 4\r");
  await expect.poll(() => command.stdin).toBe("\u0003exit 4\r");
  command.end({ exitCode: 4 });
  expect(await done).toBe(4);
  expect(command.request).toMatchObject({
    pty: { rows: 50, cols: 132 },
    env: { TERM: "screen-256color" },
    stdin: true,
  });
  expect(context.stdin.modes).toEqual([true, false]);
  expect(context.signals.listening).toBe(0);
});

test("a new window size reaches the command", async () => {
  const { command, context } = setUp();
  const done = shell(context, "web", {});
  await command.running;
  context.signals.size = { rows: 10, cols: 40 };
  context.signals.send("SIGWINCH");
  command.end();
  await done;
  expect(command.sizes).toEqual([{ rows: 10, cols: 40 }]);
});

test("the terminal is put back when the connection is lost", async () => {
  const { command, context } = setUp();
  const done = shell(context, "web", {});
  await command.running;
  command.fail(new AidoError("CONTAINER_LOST", "The sandbox is gone"));
  await expect(done).rejects.toMatchObject({ code: "CONTAINER_LOST" });
  expect(context.stdin.modes).toEqual([true, false]);
  expect(context.signals.listening).toBe(0);
});

test("the terminal is put back when a signal ends the shell", async () => {
  const { command, context } = setUp();
  const done = shell(context, "web", {});
  await command.running;
  context.signals.send("SIGTERM");
  expect(await done).toBe(143);
  expect(command.signals).toEqual(["SIGTERM"]);
  expect(context.stdin.modes).toEqual([true, false]);
});

test("raw mode is not entered when the command does not start", async () => {
  const stdin = new FakeKeyboard({ terminal: true });
  const start = () => Promise.reject(new AidoError("CONTAINER_NOT_RUNNING", "It is stopped"));
  const context = fakeContext({ stdin, backend: fakeBackend({ execs: { start } }) });
  await expect(shell(context, "web", {})).rejects.toMatchObject({ code: "CONTAINER_NOT_RUNNING" });
  expect(stdin.modes).toEqual([]);
});

test("a pipe instead of a terminal is refused with what to write", async () => {
  const { context } = setUp({ stdin: new FakeKeyboard() });
  await expect(shell(context, "web", {})).rejects.toMatchObject({ hint: expect.stringContaining("exec -i") });
});

test("exec -t without -i needs no terminal here and reads no keys", async () => {
  const { command, context } = setUp({ stdin: new FakeKeyboard() });
  command.write("stdout", "x\r\n").end();
  expect(await exec(context, "web", ["ls"], { tty: true, interactive: false })).toBe(0);
  expect(command.request).toMatchObject({ stdin: false });
  expect(context.stdin.modes).toEqual([]);
});

test("a terminal kind that is none is not passed on", async () => {
  const { command, context } = setUp({ env: { TERM: "$(reboot)" } });
  const done = shell(context, "web", {});
  await command.running;
  command.end();
  await done;
  expect(command.request?.env).toEqual({ TERM: "xterm-256color" });
});
