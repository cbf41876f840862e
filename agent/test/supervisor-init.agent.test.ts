import { readFile, readlink, stat } from "node:fs/promises";
import { expect, test } from "vitest";
import { SIGNAL_SCOPE } from "../../packages/aido/src/core/supervisor/protocol.ts";
import { AGENT_BINARY, AgentProcess, descendants, IS_SANITIZED } from "./agent-process.ts";

test("as pid 1 it runs commands as an ordinary process does", async () => {
  await using agent = await AgentProcess.start({ asInit: true });
  const client = await agent.open();
  const { stdout } = await client.run("e", ["sh", "-c", "cat /proc/1/comm; cut -d' ' -f4 /proc/$PPID/stat"]);
  expect(stdout.toString()).toBe("aido-agent\n1\n");
});

test("kill -9 -1 by a command ends every command but not the supervisor", async () => {
  await using agent = await AgentProcess.start({ asInit: true });
  const client = await agent.open();
  client.exec("other", ["sleep", "1000"]);
  await client.wait("started", (frame) => frame.id === "other");
  client.exec("killer", ["sh", "-c", "setsid sleep 1000 & kill -9 -1; sleep 1000"]);
  expect(await client.end("other")).toMatchObject({ how: 2, code: 9 });
  expect(await client.end("killer")).toMatchObject({ how: 2, code: 9 });
  await agent.poll(async () => (await descendants(await agent.pid())).length === 0, "nothing left");
  expect((await client.run("after", ["/bin/true"])).code).toBe(0);
});

test("signals from inside are ignored, a forged sender too", async () => {
  await using agent = await AgentProcess.start({ asInit: true });
  const client = await agent.open();
  const signals = "for s in 1 2 3 9 10 12 13 14 15 17 18 19; do kill -$s 1; done; echo done";
  expect((await client.run("e", ["bash", "-c", signals])).stdout.toString()).toBe("done\n");
  // rt_sigqueueinfo lets a sender write any pid, 0 too, as long as the code says it was queued.
  const forge = `
import ctypes, struct, sys
info = struct.pack("iiiiii", 15, 0, -1, 0, 0, 0).ljust(128, b"\\0")
libc = ctypes.CDLL(None, use_errno=True)
sys.exit(libc.syscall(${process.arch === "arm64" ? 138 : 129}, 1, 15, info) and ctypes.get_errno())`;
  expect(await client.run("forge", ["python3", "-c", forge])).toMatchObject({ how: 1, code: 0 });
  expect((await client.run("after", ["/bin/true"])).code).toBe(0);
});

test("SIGTERM from outside its namespace is a shutdown", async () => {
  await using agent = await AgentProcess.start({ asInit: true });
  const client = await agent.open();
  client.exec("e", ["sleep", "1000"]);
  await client.wait("started");
  process.kill(await agent.pid(), "SIGTERM");
  expect(await client.end("e")).toMatchObject({ how: 2, code: 15 });
  expect(await agent.exit()).toBe(0);
});

test("at its deadline it exits with 124", async () => {
  await using agent = await AgentProcess.start({ asInit: true });
  const client = await agent.open();
  client.exec("e", ["bash", "-c", "trap '' TERM; while :; do sleep 0.05; done"]);
  await client.wait("started");
  await client.configure({ deadlineMs: 50 });
  expect(await agent.exit()).toBe(124);
});

test("a command of the same user cannot look into the supervisor", async () => {
  await using agent = await AgentProcess.start({ asInit: true, env: { AIDO_SECRET: "hidden" } });
  const client = await agent.open();
  const script = `
for file in environ mem maps; do cat /proc/1/$file >/dev/null 2>&1 && echo "read $file"; done
ls -l /proc/1/fd >/dev/null 2>&1 && echo "listed fd"
readlink /proc/1/exe && echo "read exe"
cat /proc/$PPID/environ >/dev/null 2>&1 && echo "read the shepherd"
exit 0`;
  const result = await client.run("e", ["sh", "-c", script]);
  expect([result.code, result.stdout.toString()]).toEqual([0, ""]);
  const attach = "import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(16, int(sys.argv[1]), 0, 0) == 0)";
  expect((await client.run("init", ["python3", "-c", attach, "1"])).code).toBe(0);
  const shepherd = await client.run("shepherd", ["sh", "-c", `python3 -c '${attach}' $PPID`]);
  expect(shepherd.code).toBe(0);
});

test("orphans are reaped", async () => {
  await using agent = await AgentProcess.start({ asInit: true });
  const client = await agent.open();
  await client.run("e", ["bash", "-c", "for i in 1 2 3 4 5; do (setsid true &); done; sleep 0.1"]);
  const processes = ["sh", "-c", "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '"];
  await agent.poll(async () => (await descendants(await agent.pid())).length === 0, "nothing left");
  expect((await client.run("zombies", processes)).stdout.toString()).toBe("0\n");
});

test("killing everything of one exec leaves another alone", async () => {
  await using agent = await AgentProcess.start({ asInit: true });
  const client = await agent.open();
  client.exec("stays", ["sh", "-c", "read line; echo $line"], { flags: 1 });
  client.exec("goes", ["sh", "-c", "setsid sleep 1000 & sleep 1000"]);
  await client.wait("started", (frame) => frame.id === "goes");
  client.signal("goes", 9, SIGNAL_SCOPE.all);
  expect(await client.end("goes")).toMatchObject({ how: 2, code: 9, flags: 16 });
  client.stdin("stays", 0, Buffer.from("here\n"));
  expect((await client.end("stays")).stdout.toString()).toBe("here\n");
});

// The sanitizers themselves need /proc.
test.skipIf(IS_SANITIZED).each(["none", "foreign"] as const)(
  "with a /proc that is %s a kill still reaches every process",
  async (proc) => {
    await using agent = await AgentProcess.start({ asInit: true, proc });
    const client = await agent.open();
    const daemon = "(setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' >/dev/null 2>&1 </dev/null &)";
    client.exec("e", ["sh", "-c", `${daemon}; echo ready; sleep 1000`]);
    await client.wait("output");
    client.signal("e", 9, SIGNAL_SCOPE.all);
    expect(await client.end("e")).toMatchObject({ how: 2, code: 9, flags: 16 });
    await agent.poll(async () => (await descendants(await agent.pid())).length === 0, "nothing left");
    expect((await client.run("after", ["/bin/true"])).code).toBe(0);
  },
);

test.skipIf(IS_SANITIZED)("it is no larger than 100 KB and takes less than 1 MiB of memory", async () => {
  expect((await stat(AGENT_BINARY)).size).toBeLessThanOrEqual(100_000);
  await using agent = await AgentProcess.start({ asInit: true });
  const client = await agent.open();
  for (let i = 0; i < 50; i++) await client.run(`e${i}`, ["echo", "x"]);
  const status = await readFile(`/proc/${await agent.pid()}/status`, "utf8");
  expect(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1])).toBeLessThanOrEqual(1024);
  expect(await readlink(`/proc/${await agent.pid()}/cwd`)).toBe("/");
});
