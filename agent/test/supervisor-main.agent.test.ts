import { expect, test } from "vitest";
import { END_FLAG, EXEC_FLAG } from "../../packages/aido/src/core/supervisor/protocol.ts";
import { AgentProcess, descendants } from "./agent-process.ts";

const MAIN = { flags: EXEC_FLAG.main };
const SHORT = { arguments: ["--main-linger", "300"] };
const sh = (script: string) => ["sh", "-c", script];

test("S1-54 S1-55 the supervisor ends with its main command's code once a host has taken its end", async () => {
  for (const [script, code] of [
    ["echo done", 0],
    ["echo failed; exit 7", 7],
    ["kill -TERM $$", 143],
  ] as const) {
    await using agent = await AgentProcess.start();
    const client = await agent.open();
    expect(await client.run("m", sh(script), MAIN)).toMatchObject({ flags: END_FLAG.main });
    // Its end was told, but nobody said that it is safe.
    expect((await client.list()).execs).toMatchObject([{ id: "m", state: 2 }]);
    client.forget("m");
    expect(await agent.exit()).toBe(code);
  }
});

test("an unread main command waits for a host, which reads every byte from where the last one stopped", async () => {
  await using agent = await AgentProcess.start();
  const first = await agent.open();
  first.autoAck = false;
  first.exec("m", sh("echo one; sleep 0.1; echo two; exit 3"), MAIN);
  await first.wait("output");
  first[Symbol.dispose]();
  const second = await agent.open();
  second.attach("m", 4, 0);
  expect((await second.end("m")).stdout.toString()).toBe("two\n");
  second.forget("m");
  expect(await agent.exit()).toBe(3);
});

test("without a host the supervisor lingers and then ends with the code all the same", async () => {
  await using agent = await AgentProcess.start(SHORT);
  const client = await agent.open();
  client.autoAck = false;
  client.exec("m", sh("echo unread; exit 9"), MAIN);
  await client.wait("end");
  client[Symbol.dispose]();
  expect(await agent.exit()).toBe(9);
});

test("what else runs is killed with the main command, daemons too", async () => {
  await using agent = await AgentProcess.start({ asInit: true });
  const client = await agent.open("/");
  client.exec("other", sh("trap '' TERM; echo ready; sleep 1000"));
  await client.wait("output", ({ id }) => id === "other");
  const pid = await agent.pid();
  await client.run("m", sh("setsid sleep 1000 </dev/null >/dev/null 2>&1 & exit 5"), MAIN);
  const below = await descendants(pid);
  expect(below.length).toBeGreaterThan(1);
  client.forget("m");
  expect(await agent.exit()).toBe(5);
  for (const each of below) expect(() => process.kill(each, 0)).toThrow("ESRCH");
});

test("a stop from outside ends with the main command's answer to it, or 137 when it gave none", async () => {
  for (const [trap, code] of [
    ["trap 'exit 130' TERM", 130],
    ["trap 'exit 0' TERM", 0],
    ["trap '' TERM", 137],
  ] as const) {
    await using agent = await AgentProcess.start();
    const client = await agent.open();
    client.exec("m", sh(`${trap}; echo ready; while :; do sleep 0.05; done`), MAIN);
    await client.wait("output");
    client.shutdown(code === 137 ? 200 : 5000);
    expect(await agent.exit()).toBe(code);
  }
});

test("there is one main command; a tool is none; one that cannot start leaves the place free", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  client.exec("missing", ["/no/such/program"], MAIN);
  expect(await client.error("missing")).toMatchObject({ code: "START_FAILED" });
  client.exec("tool", ["stat", "/", "."], { flags: EXEC_FLAG.main | EXEC_FLAG.builtin });
  expect(await client.error("tool")).toMatchObject({ code: "UNSUPPORTED" });
  client.exec("m", ["sleep", "1000"], MAIN);
  await client.wait("started", ({ id }) => id === "m");
  client.exec("n", ["true"], MAIN);
  expect(await client.error("n")).toMatchObject({ code: "UNSUPPORTED", message: "there is a main command" });
  client.exec("m", ["sleep", "1000"], MAIN);
  expect(await client.wait("started", ({ existing }) => existing === 1)).toMatchObject({ id: "m" });
  client.signal("m", 9, 1);
  await client.end("m");
  client.forget("m");
  expect(await agent.exit()).toBe(137);
});

test("an ended main command is not dropped to make room for others", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  await client.run("m", sh("exit 4"), MAIN);
  for (let i = 0; i < 260; i++) await client.run(`e${i}`, ["true"]);
  expect((await client.list()).execs).toContainEqual(expect.objectContaining({ id: "m", state: 2 }));
  client.forget("m");
  expect(await agent.exit()).toBe(4);
});

test("the deadline's code comes before the main command's", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  client.exec("m", ["sleep", "1000"], MAIN);
  await client.wait("started");
  await client.configure({ deadlineMs: 50 });
  expect(await agent.exit()).toBe(124);
});
