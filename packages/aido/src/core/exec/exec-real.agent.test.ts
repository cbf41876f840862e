import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { OutputRange } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { openAgentBed } from "../../../test/exec/agent-bed.ts";
import type { AgentDriver } from "../../../test/exec/agent-driver.ts";
import { type ExecBed, SANDBOX, until } from "../../../test/exec/exec-bed.ts";
import { collect } from "./collect.ts";

const run = (bed: ExecBed<AgentDriver>, argv: string[], extra = {}) =>
  collect(bed.execs, SANDBOX, { argv, ...extra }, { maxBytes: 1_000_000 });

async function sha256(
  bed: ExecBed<AgentDriver>,
  execId: string,
  range: OutputRange,
): Promise<[string, number]> {
  const hash = createHash("sha256");
  let next = 0;
  for await (const { stream, offset, data } of bed.execs.output(SANDBOX, execId, range)) {
    if (stream !== "stdout") continue;
    expect(offset).toBe(next);
    next += data.length;
    hash.update(data);
  }
  return [hash.digest("hex"), next];
}

test("a command's output and end are recorded", async () => {
  await using at = await openAgentBed();
  const { info, stdout, stderr } = await run(at.bed, ["sh", "-c", "echo out; echo err >&2; pwd; exit 7"]);
  expect(info).toMatchObject({ status: "exited", exitCode: 7, stdoutBytes: 5 + at.workdir.length });
  expect(stdout.toString()).toBe(`out\n${at.workdir}\n`);
  expect(stderr.toString()).toBe("err\n");
  const recorded = await readFile(join(at.bed.dataDir.exec(SANDBOX, info.id), "stdout"), "utf8");
  expect(recorded).toBe(stdout.toString());
});

test("variables of the sandbox and the exec arrive, and a directory of its own", async () => {
  await using at = await openAgentBed();
  const { stdout } = await run(at.bed, ["sh", "-c", 'echo "$FROM_SANDBOX $MINE $HOME $LANG"; pwd'], {
    env: { MINE: "2" },
    cwd: "/tmp",
  });
  expect(stdout.toString()).toBe(`1 2 ${at.workdir} C.UTF-8\n/tmp\n`);
});

test("a command that is not there is refused, and recorded as 127", async () => {
  await using at = await openAgentBed();
  await expect(run(at.bed, ["no-such-command"], { id: "missing" })).rejects.toMatchObject({
    code: "EXECUTION_FAILED",
    details: { errno: "ENOENT" },
  });
  expect(await at.bed.execs.get(SANDBOX, "missing")).toMatchObject({ status: "exited", exitCode: 127 });
});

test("a connection that breaks again and again during a flood loses and doubles no byte", async () => {
  await using at = await openAgentBed();
  const script = "i=0; while [ $i -lt 60 ]; do head -c 524288 /dev/zero | tr '\\0' \"$i\"; i=$((i+1)); done";
  const { id } = await at.bed.execs.start(SANDBOX, { argv: ["sh", "-c", `${script} | tee sum-me | cat`] });
  const following = sha256(at.bed, id, { follow: true });
  for (let drop = 1; drop <= 8; drop += 1) {
    await until(`${drop} MiB are recorded`, async () => {
      const info = await at.bed.execs.get(SANDBOX, id);
      return info.status !== "running" || info.stdoutBytes >= drop * 1_048_576;
    });
    at.bed.driver.dropConnections();
  }
  const [digest, bytes] = await following;
  const expected = await readFile(join(at.workdir, "sum-me"));
  expect(bytes).toBe(expected.length);
  expect(bytes).toBe(60 * 524_288);
  expect(digest).toBe(createHash("sha256").update(expected).digest("hex"));
  expect(await at.bed.execs.wait(SANDBOX, id)).toMatchObject({ status: "exited", exitCode: 0 });
});

test("the seventeenth process waits until one of the others has ended", async () => {
  await using at = await openAgentBed();
  const record = await at.bed.record();
  const hosts = Array.from({ length: 15 }, () => at.bed.newHost());
  for (const { supervisors } of [at.bed.host, ...hosts]) await supervisors.get(record).list();
  const waiting = at.bed.newHost().supervisors.get(record).list();
  await until("it is refused", () => at.bed.logged.some((line) => line.includes("Too many aido processes")));
  for (const host of hosts) await host.close();
  expect(await waiting).toEqual([]);
});

test("output resumes at any offset", async () => {
  await using at = await openAgentBed();
  const { info } = await run(at.bed, ["sh", "-c", "seq 1 20000; seq 1 10 >&2"]);
  const part: Buffer[] = [];
  for await (const chunk of at.bed.execs.output(SANDBOX, info.id, {
    stdoutOffset: 100_000,
    stderrOffset: 21,
  })) {
    if (chunk.stream === "stdout" && part.length === 0) expect(chunk.offset).toBe(100_000);
    if (chunk.stream === "stdout") part.push(Buffer.from(chunk.data));
  }
  const whole = await readFile(join(at.bed.dataDir.exec(SANDBOX, info.id), "stdout"));
  expect(Buffer.concat(part)).toEqual(whole.subarray(100_000));
});

test("10 MiB of input go through cat while the connection breaks", async () => {
  await using at = await openAgentBed();
  const input = Buffer.alloc(10_485_760);
  for (let i = 0; i < input.length; i += 4) input.writeUInt32LE(i, i);
  const { id } = await at.bed.execs.start(SANDBOX, { argv: ["cat"], stdin: true });
  const feeding = (async () => {
    for (let i = 0; i < input.length; i += 262_144) {
      await at.bed.execs.writeStdin(SANDBOX, id, input.subarray(i, i + 262_144));
      if (i % 2_097_152 === 0) at.bed.driver.dropConnections();
    }
    await at.bed.execs.closeStdin(SANDBOX, id);
  })();
  const [digest, bytes] = await sha256(at.bed, id, { follow: true });
  await feeding;
  expect(bytes).toBe(input.length);
  expect(digest).toBe(createHash("sha256").update(input).digest("hex"));
});

test("input to a command that does not read is refused, not waited for", async () => {
  await using at = await openAgentBed();
  const { id } = await at.bed.execs.start(SANDBOX, { argv: ["sh", "-c", "exec <&-; sleep 30"], stdin: true });
  const feed = async () => {
    for (let sent = 0; sent < 100; sent += 1)
      await at.bed.execs.writeStdin(SANDBOX, id, Buffer.alloc(10_000));
  };
  await expect(feed()).rejects.toMatchObject({ code: "EXECUTION_CONFLICT" });
  await at.bed.execs.kill(SANDBOX, id);
});

test("kill reaches daemons that the command left behind", async () => {
  await using at = await openAgentBed();
  const script =
    "setsid sh -c 'echo $$ > daemon; exec sleep 300' & while [ ! -s daemon ]; do sleep 0.01; done; echo up";
  const { info } = await run(at.bed, ["sh", "-c", script]);
  expect(info.status).toBe("exited");
  const pid = Number(await readFile(join(at.workdir, "daemon"), "utf8"));
  expect(process.kill(pid, 0)).toBe(true);
  await at.bed.execs.kill(SANDBOX, info.id);
  await until("the daemon is gone", () => !isAlive(pid));
});

test("a timeout, a kill and too much output are told apart", async () => {
  await using at = await openAgentBed({ outputBytes: 100_000 });
  const timeout = await run(at.bed, ["sleep", "60"], { timeoutMs: 50 });
  expect(timeout.info).toMatchObject({ status: "timeout", signal: "SIGTERM", exitCode: 143 });
  const { id } = await at.bed.execs.start(SANDBOX, { argv: ["sleep", "60"] });
  await at.bed.execs.kill(SANDBOX, id, { signal: "KILL" });
  expect(await at.bed.execs.wait(SANDBOX, id)).toMatchObject({ status: "killed", signal: "SIGKILL" });
  const flood = await run(at.bed, ["cat", "/dev/zero"]);
  expect(flood.info).toMatchObject({ status: "output_limit", stdoutBytes: 100_000 });
});

test("a terminal is one, of the size asked for", async () => {
  await using at = await openAgentBed();
  const argv = ["sh", "-c", "test -t 0 && test -t 1 && stty size; echo to-stderr >&2"];
  const { stdout, stderr } = await run(at.bed, argv, { pty: { rows: 33, cols: 101 } });
  expect(stdout.toString().replaceAll("\r", "")).toBe("33 101\nto-stderr\n");
  expect(stderr.length).toBe(0);
});

test("another process takes a flood over while the first is still reading it", async () => {
  await using at = await openAgentBed();
  const { id } = await at.bed.execs.start(SANDBOX, { argv: ["sh", "-c", "seq 1 2000000"] });
  const first = sha256(at.bed, id, { follow: true });
  await until(
    "something is recorded",
    async () => (await at.bed.execs.get(SANDBOX, id)).stdoutBytes > 100_000,
  );
  const other = at.bed.newHost();
  const info = await other.execs.wait(SANDBOX, id);
  expect(info).toMatchObject({ status: "exited", exitCode: 0 });
  const [digest, bytes] = await first;
  expect(bytes).toBe(info.stdoutBytes);
  expect(bytes).toBe(14_888_896);
  const recorded = await readFile(join(at.bed.dataDir.exec(SANDBOX, id), "stdout"));
  expect(createHash("sha256").update(recorded).digest("hex")).toBe(digest);
  expect(recorded.subarray(-8).toString()).toBe("2000000\n");
});

test("a process that died is succeeded: what it did not record is still there", async () => {
  await using at = await openAgentBed();
  const { id } = await at.bed.execs.start(SANDBOX, {
    argv: ["sh", "-c", "seq 1 100000; echo end >&2; exit 4"],
  });
  at.bed.host.die();
  const next = at.bed.newHost();
  await next.execs.recover(SANDBOX);
  expect(await next.execs.wait(SANDBOX, id)).toMatchObject({
    status: "exited",
    exitCode: 4,
    stdoutBytes: 588_895,
  });
  const recorded = await readFile(join(at.bed.dataDir.exec(SANDBOX, id), "stdout"), "utf8");
  expect(recorded.endsWith("\n99999\n100000\n")).toBe(true);
});

test("execs of a supervisor that died are lost, and say so soon", async () => {
  await using at = await openAgentBed();
  const { id } = await at.bed.execs.start(SANDBOX, {
    argv: ["sh", "-c", "echo before; exec cat"],
    stdin: true,
  });
  await until("its output is recorded", async () => (await at.bed.execs.get(SANDBOX, id)).stdoutBytes === 7);
  const waiting = at.bed.execs.wait(SANDBOX, id, AbortSignal.timeout(5_000));
  await at.bed.driver.stop();
  expect(await waiting).toMatchObject({ status: "lost", exitCode: undefined, stdoutBytes: 7 });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
