import { expect, test } from "vitest";
import { EXEC_FLAG, HOST_FRAME, SIGNAL_SCOPE } from "../../packages/aido/src/core/supervisor/protocol.ts";
import type { AgentClient } from "./agent-client.ts";
import { AgentProcess, descendants, isAlive } from "./agent-process.ts";

const KILL = 9;
const TERM = 15;
const daemon = "setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' >/dev/null 2>&1 </dev/null &";

/** Every process that is left below the supervisor, shepherds too. */
async function left(agent: AgentProcess): Promise<number> {
  return (await descendants(await agent.pid())).length;
}

async function printed(client: AgentClient, id: string, text: string): Promise<void> {
  await client.until(() => (client.output(id, 1).bytes.includes(text) ? true : undefined), text);
}

test("a timeout ends a command that ignores TERM, after its grace", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const script = "trap 'echo got TERM' TERM; while :; do sleep 0.05; done";
  const result = await client.run("e", ["bash", "-c", script], { timeoutMs: 1000, graceMs: 1000 });
  expect(result).toMatchObject({ how: 2, code: KILL, flags: 1 });
  expect(result.stdout.toString()).toBe("got TERM\n");
  await agent.poll(async () => (await left(agent)) === 0, "nothing left");
});

test("a command that heeds TERM at its timeout ends with its own code and the timeout is told", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const script = "trap 'exit 3' TERM; while :; do sleep 0.05; done";
  const result = await client.run("e", ["bash", "-c", script], { timeoutMs: 1000, graceMs: 10_000 });
  expect(result).toMatchObject({ how: 1, code: 3, flags: 1 });
});

test("a timeout without grace kills at once", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  expect(await client.run("e", ["sleep", "1000"], { timeoutMs: 50 })).toMatchObject({
    how: 2,
    code: KILL,
    flags: 1,
  });
});

test("a timeout reaches daemons that left the session and ignore TERM", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const script = `${daemon} (setsid sh -c "${"sleep 1000 & sleep 1000 & wait"}" >/dev/null 2>&1 &); echo ready; sleep 1000`;
  const result = await client.run("e", ["bash", "-c", script], { timeoutMs: 1500, graceMs: 50 });
  expect(result.stdout.toString()).toBe("ready\n");
  expect(result.flags & 1).toBe(1);
  await agent.poll(async () => (await left(agent)) === 0, "nothing left");
});

test("a signal for the first process alone leaves the others", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  client.exec("e", ["bash", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!; exec sleep 1000"]);
  await printed(client, "e", "\n");
  client.signal("e", TERM, SIGNAL_SCOPE.first);
  const result = await client.end("e");
  expect(result).toMatchObject({ how: 2, code: TERM, flags: 16 });
  expect(await isAlive(Number(result.stdout.toString()))).toBe(true);
  client.signal("e", KILL, SIGNAL_SCOPE.all);
  await agent.poll(async () => (await left(agent)) === 0, "nothing left");
});

test("TERM to all with a grace ends in KILL for those that ignore it", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  client.exec("e", ["bash", "-c", `${daemon} trap '' TERM; echo ready; while :; do sleep 0.05; done`]);
  await printed(client, "e", "ready");
  client.signal("e", TERM, SIGNAL_SCOPE.all, 100);
  expect(await client.wait("ok")).toMatchObject({ request: HOST_FRAME.signal, id: "e" });
  expect(await client.end("e")).toMatchObject({ how: 2, code: KILL, flags: 16 });
  await agent.poll(async () => (await left(agent)) === 0, "nothing left");
});

test("a fork bomb is killed to the last process", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const bomb = 'ulimit -u 300; f() { f & sleep 0.01; f; }; trap "" TERM; echo ready; f';
  client.exec("e", ["bash", "-c", bomb], { user: { uid: 54_321, gid: 54_321 }, cwd: "/" });
  await printed(client, "e", "ready");
  client.signal("e", KILL, SIGNAL_SCOPE.all);
  expect(await client.end("e")).toMatchObject({ how: 2, code: KILL, flags: 16 });
  await agent.poll(async () => (await left(agent)) === 0, "nothing left");
});

test("a normal end leaves a background child alive, which a later signal reaches", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const result = await client.run("e", ["bash", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $!"]);
  expect(result).toMatchObject({ code: 0, flags: 0 });
  const [pid = 0] = (await descendants(await agent.pid())).slice(1);
  expect(await isAlive(pid)).toBe(true);
  client.signal("e", KILL, SIGNAL_SCOPE.all);
  await agent.poll(async () => (await left(agent)) === 0, "nothing left");
});

test("a background child that holds the output is cut off and goes on writing to nowhere", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const script = "(while :; do echo more; sleep 0.02; done) & echo first";
  const result = await client.run("e", ["bash", "-c", script]);
  expect(result).toMatchObject({ how: 1, code: 0, flags: 8 });
  expect(result.end.stdoutTotal).toBe(result.stdout.length);
  const [, writer = 0] = await descendants(await agent.pid());
  expect(await isAlive(writer)).toBe(true);
  client.forget("e");
  await client.wait("forgotten");
  // A closed pipe would end it at its next write.
  expect(await client.run("clock", ["sh", "-c", "sleep 1000 &"])).toMatchObject({ flags: 8 });
  expect(await isAlive(writer)).toBe(true);
});

test("a background child that closes its output in time cuts nothing off", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const result = await client.run("e", ["bash", "-c", "(sleep 0.05; echo late) & echo early"]);
  expect(result).toMatchObject({ code: 0, flags: 0 });
  expect(result.stdout.toString()).toBe("early\nlate\n");
});

test("killing its own shepherd ends the command and everything that falls to the supervisor", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  client.exec("other", ["sleep", "1000"]);
  await client.wait("started", (frame) => frame.id === "other");
  const script = `${daemon} (setsid sleep 1000 >/dev/null 2>&1 &); kill -9 $PPID; sleep 1000`;
  const result = await client.run("e", ["bash", "-c", script]);
  expect(result).toMatchObject({ how: 2, code: KILL });
  // The other's shepherd and command.
  await agent.poll(async () => (await left(agent)) === 2, "only the other exec left");
  expect((await client.run("after", ["/bin/true"])).code).toBe(0);
});

test("a stopped shepherd is set going again", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  expect(await client.run("e", ["sh", "-c", "kill -STOP $PPID; exit 4"])).toMatchObject({ how: 1, code: 4 });
});

test("a tool is killed like any command", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  client.exec("e", ["write", agent.directory, "file", "644"], { flags: EXEC_FLAG.builtin | EXEC_FLAG.stdin });
  await client.wait("started");
  client.signal("e", KILL, SIGNAL_SCOPE.all);
  expect(await client.end("e")).toMatchObject({ how: 2, code: KILL, flags: 16 });
});

test("a signal that does not exist, or for an unknown exec, is refused", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  client.exec("e", ["sleep", "1000"]);
  client.signal("e", 65, SIGNAL_SCOPE.first);
  expect(await client.error("e")).toMatchObject({ code: "UNSUPPORTED" });
  client.signal("unknown", TERM, SIGNAL_SCOPE.first);
  expect(await client.error("unknown")).toMatchObject({ code: "NOT_FOUND" });
});

test("shutdown asks, waits, kills and exits with 0", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  const script = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
  client.exec("polite", ["bash", "-c", script]);
  client.exec("deaf", ["bash", "-c", `${daemon} trap '' TERM; echo ready; while :; do sleep 0.05; done`]);
  await printed(client, "polite", "ready");
  await printed(client, "deaf", "ready");
  const below = await descendants(await agent.pid());
  client.shutdown(300);
  expect(await client.wait("ok")).toMatchObject({ request: HOST_FRAME.shutdown });
  expect((await client.end("polite")).stdout.toString()).toBe("ready\nbye\n");
  expect(await agent.exit()).toBe(0);
  for (const pid of below) expect(await isAlive(pid)).toBe(false);
});

test("SIGTERM to a supervisor that is not pid 1 is a shutdown", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  client.exec("e", ["sleep", "1000"]);
  await client.wait("started");
  agent.kill("SIGTERM");
  expect(await agent.exit()).toBe(0);
});

test("at its deadline the supervisor kills everything and exits with 124", async () => {
  await using agent = await AgentProcess.start();
  const client = await agent.open();
  client.exec("e", ["bash", "-c", `${daemon} trap '' TERM; echo ready; while :; do sleep 0.05; done`]);
  await printed(client, "e", "ready");
  const below = await descendants(await agent.pid());
  await client.configure({ deadlineMs: 100, workdir: agent.directory });
  expect(await agent.exit()).toBe(124);
  for (const pid of below) expect(await isAlive(pid)).toBe(false);
});
