import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { EXEC_FLAG } from "../../packages/aido/src/core/supervisor/protocol.ts";
import type { AgentClient } from "./agent-client.ts";
import { AgentProcess, isAlive, spareOf } from "./agent-process.ts";

/** A supervisor that has run a command, and its spare. */
async function withSpare(agent: AgentProcess): Promise<{ client: AgentClient; spare: number }> {
  const client = await agent.open();
  await client.run("first", ["/bin/true"]);
  return { client, spare: await theSpare(agent) };
}

async function theSpare(agent: AgentProcess, before?: number): Promise<number> {
  let spare: number | undefined;
  await agent.poll(async () => {
    spare = await spareOf(await agent.pid());
    return spare !== undefined && spare !== before;
  }, "a spare");
  return spare ?? 0;
}

const shepherd = ["sh", "-c", "echo $PPID"];

test("a process that waits for it takes the next command, and another one takes its place", async () => {
  await using agent = await AgentProcess.start();
  const { client, spare } = await withSpare(agent);
  expect((await client.run("second", shepherd)).stdout.toString()).toBe(`${spare}\n`);
  const next = await theSpare(agent, spare);
  expect((await client.run("third", shepherd)).stdout.toString()).toBe(`${next}\n`);
});

test("what a command gets is the same from a spare and from a fork", async () => {
  await using agent = await AgentProcess.start({ asInit: true });
  const client = await agent.open();
  const script = `
ls -l /proc/self/fd | awk '{ print $9, $10 }' | sed 's/[0-9]*]$//'
grep -E '^(Sig|Cap|NoNewPrivs|Uid|Gid|Groups)' /proc/self/status; ulimit -a; pwd; env
cat /proc/$PPID/comm; readlink /proc/self/ns/pid; cut -d' ' -f5-6 /proc/self/stat | tr -d '0-9'`;
  const options = {
    user: { uid: 1000, gid: 1001 },
    cwd: "/tmp",
    env: ["A=1", "B=two words", "PATH=/usr/bin:/bin"],
  };
  for (const flags of [0, EXEC_FLAG.stdin, EXEC_FLAG.pty]) {
    const ask = (id: string) => {
      const answer = client.run(`${id}-${flags}`, ["sh", "-c", script], { ...options, flags });
      if (flags === EXEC_FLAG.stdin) client.stdinClose(`${id}-${flags}`, 0);
      return answer;
    };
    await kill(agent, await theSpareOrFirst(client, agent));
    const forked = await ask("forked");
    await theSpare(agent);
    const spared = await ask("spared");
    expect(forked.code).toBe(0);
    expect(spared.stdout.toString()).toBe(forked.stdout.toString());
    expect(spared.stderr.toString()).toBe(forked.stderr.toString());
  }
});

async function kill(agent: AgentProcess, spare: number): Promise<void> {
  process.kill(spare, "SIGKILL");
  await agent.poll(async () => !(await isAlive(spare)), "the spare's end");
}

async function theSpareOrFirst(client: AgentClient, agent: AgentProcess): Promise<number> {
  if ((await spareOf(await agent.pid())) === undefined) await client.run("first", ["/bin/true"]);
  return await theSpare(agent);
}

test.each(["SIGKILL", "SIGSTOP"] as const)(
  "a spare that got a %s keeps no command from running",
  async (signal) => {
    await using agent = await AgentProcess.start();
    const { client, spare } = await withSpare(agent);
    if (signal === "SIGKILL") await kill(agent, spare);
    else process.kill(spare, signal);
    for (const id of ["second", "third", "fourth"]) {
      expect(await client.run(id, ["echo", id])).toMatchObject({
        how: 1,
        code: 0,
        stdout: Buffer.from(`${id}\n`),
      });
    }
  },
);

test("a spare is not trusted any more once a shepherd was killed", async () => {
  await using agent = await AgentProcess.start();
  const { client } = await withSpare(agent);
  client.exec("killed", ["sh", "-c", "echo $PPID; exec sleep 600"]);
  const told = await client.wait("output");
  const spare = await theSpare(agent, Number(told.bytes.toString()));
  process.kill(Number(told.bytes.toString()), "SIGKILL");
  await client.end("killed");
  expect((await client.run("after", shepherd)).stdout.toString()).not.toBe(`${spare}\n`);
  await agent.poll(async () => !(await isAlive(spare)), "the spare's end");
});

test("a command that is too much for a spare runs all the same", async () => {
  await using agent = await AgentProcess.start();
  const { client, spare } = await withSpare(agent);
  const much = "x".repeat(100_000);
  const result = await client.run("much", ["sh", "-c", 'echo $PPID; printf %s "$0" "$A"', much], {
    env: [`A=${much}`],
  });
  const [parent, rest] = result.stdout.toString().split("\n");
  expect(parent).not.toBe(`${spare}`);
  expect(rest).toBe(much + much);
  expect((await client.run("after", shepherd)).stdout.toString()).toBe(`${spare}\n`);
});

test("a command that cannot be started is told with its reason", async () => {
  await using agent = await AgentProcess.start();
  const { client } = await withSpare(agent);
  client.exec("missing", ["/no/such/program"]);
  expect(await client.wait("error", ({ id }) => id === "missing")).toMatchObject({ errno: 2 });
  client.exec("nowhere", ["/bin/true"], { cwd: "/no/such/place" });
  expect(await client.wait("error", ({ id }) => id === "nowhere")).toMatchObject({ errno: 2 });
  expect((await client.run("after", ["/bin/true"])).code).toBe(0);
});

test("many commands at once run, each once", async () => {
  await using agent = await AgentProcess.start();
  const { client } = await withSpare(agent);
  const ids = Array.from({ length: 60 }, (_, index) => `e${index}`);
  const results = await Promise.all(ids.map((id) => client.run(id, ["echo", id])));
  expect(results.map(({ stdout }) => stdout.toString())).toEqual(ids.map((id) => `${id}\n`));
});

test("a command of the same user can neither read nor trace it", async () => {
  await using agent = await AgentProcess.start({ asInit: true });
  const { client } = await withSpare(agent);
  // This one's own start makes it, a moment later.
  const look = `
until grep -qsx aido-spare /proc/[0-9]*/comm; do :; done
for dir in /proc/[0-9]*; do
  grep -q aido-spare $dir/comm 2>/dev/null || continue
  echo found
  for file in environ mem maps; do cat $dir/$file >/dev/null 2>&1 && echo "read $file"; done
  ls -l $dir/fd >/dev/null 2>&1 && echo "listed fd"
done
exit 0`;
  const result = await client.run("look", ["sh", "-c", look]);
  expect(result.stdout.toString()).toBe("found\n");
});

test("it ends with its supervisor, also with one that is killed", async () => {
  await using agent = await AgentProcess.start();
  const { spare } = await withSpare(agent);
  process.kill(await agent.pid(), "SIGKILL");
  await agent.exit();
  const end = Date.now() + 20_000;
  while (await isAlive(spare)) expect(Date.now()).toBeLessThan(end);
  await using other = await AgentProcess.start();
  const { spare: second } = await withSpare(other);
  process.kill(await other.pid(), "SIGTERM");
  expect(await other.exit()).toBe(0);
  expect(await isAlive(second)).toBe(false);
  expect(await readFile(`/proc/${second}/comm`, "utf8").catch(() => "")).not.toBe("aido-spare\n");
});
