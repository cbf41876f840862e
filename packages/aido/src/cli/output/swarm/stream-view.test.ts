import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { fakeContext } from "../../testing/fake-context.ts";
import { busySwarm, ScriptedSwarm } from "../../testing/scripted-swarm.ts";
import { MemorySink } from "../memory-sink.ts";
import { openSwarmView } from "./open-swarm-view.ts";

test("with --json each event is a line, times in ISO 8601, and overlaps have lines of their own", async () => {
  const context = fakeContext({ globals: { json: true } });
  const view = openSwarmView(context);
  const { events } = busySwarm().done();
  for (const event of events) view.show(event);
  await view.close();
  const lines = context.stdout.text.trimEnd().split("\n");
  const values = lines.map((line) => JSON.parse(line));
  const own = values.filter(({ type }) => type !== "overlap");
  expect(own).toEqual(events.map((event) => JSON.parse(JSON.stringify(event))));
  expect(values.find(({ type }) => type === "overlap")).toEqual({
    type: "overlap",
    at: "2026-03-01T10:00:24.000Z",
    path: "src/routes.ts",
    workers: ["aimi-swarm-cart", "aimi-swarm-login"],
  });
});

test("JSON has no control characters whatever a worker says", async () => {
  const context = fakeContext({ globals: { json: true } });
  const view = openSwarmView(context);
  const { events } = new ScriptedSwarm().announce("a", ["\u009b2J"]).say("a", "\u001b[2J\u007f\u202e\n");
  for (const event of events) view.show(event);
  await view.close();
  expect(context.stdout.text).toMatch(/^[\n -~]*$/);
});

test("elsewhere than on a terminal, and on a dumb one, changes are lines without escapes", async () => {
  for (const [columns, env] of [
    [undefined, { TERM: "xterm" }],
    [80, { TERM: "dumb" }],
    [80, {}],
    [12, { TERM: "xterm" }],
  ] as const) {
    const context = fakeContext({ stdout: new MemorySink(columns), env: { NO_COLOR: "1", ...env } });
    if (columns !== undefined) context.signals.size = { rows: 24, cols: columns };
    const view = openSwarmView(context);
    for (const event of busySwarm().events) view.show(event);
    await view.close();
    expect(context.stdout.text).toContain("login        | US-001 completed: Sign-in form");
    expect(context.stdout.text).not.toContain("\u001b");
    expect(context.signals.listening).toBe(0);
  }
});

test("quiet tells warnings only", async () => {
  const context = fakeContext({ globals: { quiet: true } });
  const view = openSwarmView(context);
  for (const event of busySwarm().events) view.show(event);
  await view.close();
  expect(context.stdout.text).toBe("");
  expect(context.stderr.text).toBe(
    "warning: ANTHROPIC_BASE_URL is not https\nwarning: cart: said nothing for 5 minutes\n",
  );
});

test("a reader that pauses stops nobody, loses only what was said, and is told how much", async () => {
  const stdout = new MemorySink();
  const write = stdout.write.bind(stdout);
  let release: () => void = () => undefined;
  const paused = new Promise<void>((resolve) => (release = resolve));
  const context = fakeContext({
    globals: { json: true },
    stdout: Object.assign(stdout, { write: (text: string) => paused.then(() => write(text)) }),
  });
  const view = openSwarmView(context);
  const swarm = new ScriptedSwarm().announce("a", ["one"]);
  for (let index = 0; index < 3000; index += 1) swarm.say("a", `${index} ${"x".repeat(1000)}`);
  swarm.story("a", 1, "completed").done();
  for (const event of swarm.events) view.show(event);
  release();
  await view.close();
  const values = stdout.text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const said = values.filter(({ type }) => type === "progress").length;
  const omitted = values.find(({ type }) => type === "omitted");
  expect(said).toBeLessThan(1100);
  expect(said + omitted.count).toBe(3000);
  expect(values.at(-1).type).toBe("done");
  expect(values.some(({ type }) => type === "story")).toBe(true);
});

test("when the reader is gone the swarm hears nothing of it", async () => {
  const stdout = Object.assign(new MemorySink(), {
    write: () => Promise.reject(Object.assign(new Error("write EPIPE"), { code: "EPIPE" })),
  });
  const view = openSwarmView(fakeContext({ globals: { json: true }, stdout }));
  for (const event of busySwarm().events) {
    view.show(event);
    await turn();
  }
  await view.close();
});
