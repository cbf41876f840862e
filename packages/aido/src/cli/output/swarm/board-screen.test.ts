import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { fakeContext } from "../../testing/fake-context.ts";
import { busySwarm, ScriptedSwarm } from "../../testing/scripted-swarm.ts";
import { MemorySink } from "../memory-sink.ts";
import { openSwarmView } from "./open-swarm-view.ts";

const ENTER = "\u001b[?1049h";
const LEAVE = "\u001b[?1049l";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function setUp(env: Record<string, string> = {}) {
  const writes: string[] = [];
  const stdout = new MemorySink(80);
  const write = stdout.write.bind(stdout);
  Object.assign(stdout, {
    write: (text: string) => {
      writes.push(text);
      return write(text);
    },
  });
  const context = fakeContext({ stdout, env: { TERM: "xterm-256color", ...env } });
  return { context, writes, stdout, view: openSwarmView(context) };
}

test("the board is drawn on the second screen, and its last state stays on the first", async () => {
  const { context, view, stdout } = setUp({ NO_COLOR: "1" });
  for (const event of busySwarm().events) view.show(event);
  await vi.advanceTimersByTimeAsync(250);
  await view.close();
  const [before, rest = ""] = stdout.text.split(ENTER);
  const [drawn, after] = rest.split(LEAVE);
  expect(before).toBe("");
  expect(drawn).toContain("\u001b[?25l");
  expect(drawn).toContain("login         running");
  expect(drawn).toContain("\u001b[?7h\u001b[?25h");
  expect(after).toContain("login         running");
  expect(after).not.toContain("\u001b");
  expect(context.signals.listening).toBe(0);
  expect(context.signals.atEnd.size).toBe(0);
});

test("many events are few drawings, and nothing is drawn when nothing changed", async () => {
  const { view, writes } = setUp();
  const swarm = new ScriptedSwarm().announce("a", ["one"]).state("a", "running");
  for (const event of swarm.events) view.show(event);
  await vi.advanceTimersByTimeAsync(1000);
  const before = writes.length;
  for (let index = 0; index < 1000; index += 1) {
    view.show(new ScriptedSwarm().say("a", `line ${index}`).events[1] ?? expect.unreachable());
    await vi.advanceTimersByTimeAsync(1);
  }
  expect(writes.length - before).toBeGreaterThan(2);
  expect(writes.length - before).toBeLessThanOrEqual(6);
  await vi.advanceTimersByTimeAsync(2000);
  const after = writes.length;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(writes.length).toBe(after);
  await view.close();
});

test("a change of size draws the board anew in the new one", async () => {
  const { context, view, writes } = setUp({ NO_COLOR: "1" });
  for (const event of busySwarm().events) view.show(event);
  await vi.advanceTimersByTimeAsync(1500);
  context.signals.size = { rows: 5, cols: 40 };
  context.signals.send("SIGWINCH");
  await vi.advanceTimersByTimeAsync(300);
  const lines = (writes.at(-1) ?? "").split("\r\n");
  expect(lines).toHaveLength(5);
  await view.close();
});

test("Ctrl-Z gives the terminal back, and the board returns with the process", async () => {
  const { context, view, writes } = setUp();
  for (const event of busySwarm().events) view.show(event);
  await vi.advanceTimersByTimeAsync(300);
  context.signals.send("SIGTSTP");
  await vi.advanceTimersByTimeAsync(0);
  expect(writes.at(-1)).toContain(LEAVE);
  expect(context.signals.suspensions).toBe(1);
  const frames = writes.length;
  await vi.advanceTimersByTimeAsync(5000);
  expect(writes.length).toBe(frames);
  context.signals.send("SIGCONT");
  await vi.advanceTimersByTimeAsync(1000);
  expect(writes[frames]).toContain(ENTER);
  expect(writes.length).toBeGreaterThan(frames + 1);
  await view.close();
});

test("a terminal that takes nothing keeps nobody from closing", async () => {
  const stdout = Object.assign(new MemorySink(80), { write: () => new Promise<void>(() => undefined) });
  const view = openSwarmView(fakeContext({ stdout, env: { TERM: "xterm" } }));
  for (const event of busySwarm().events) view.show(event);
  const closed = view.close();
  await vi.advanceTimersByTimeAsync(2000);
  await closed;
});

test("until it is closed, the end of the process gives the terminal back", async () => {
  const { context, view } = setUp();
  expect([...context.signals.atEnd].join("")).toContain(`\u001b[?25h${LEAVE}`);
  await view.close();
  await view.close();
  expect(context.signals.atEnd.size).toBe(0);
});
