import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { storyJson } from "../core/swarm/testing/task-file-text.ts";
import { Stopped } from "./stopped.ts";
import { AdapterBed, TASK_FILE } from "./testing/adapter-bed.ts";

const SIGTERM = new Stopped("signal", "The worker was stopped by SIGTERM");
/** Claude Code as far as its output goes: answers of the model with what they cost, without end. */
const TALKER = `echo "by $story" > "$story.txt"; n=0
while :; do n=$((n+1))
echo "{\\"type\\":\\"assistant\\",\\"session_id\\":\\"s\\",\\"message\\":{\\"id\\":\\"m$n\\",\\"content\\":[{\\"type\\":\\"text\\",\\"text\\":\\"answer $n\\"}],\\"usage\\":{\\"input_tokens\\":90,\\"output_tokens\\":10}}}"
sleep 0.05; done`;

function talker(bed: AdapterBed): Record<string, string> {
  return { ...bed.agent(TALKER), AIMI_AGENT: "claude", ANTHROPIC_API_KEY: "sk-ant-0123456789" };
}

function isRunning(pid: number): boolean {
  try {
    // One that has ended and that nobody has reaped yet does not run.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

test("S1-72 stopped by a signal, the agent and all it started are ended, its work is at origin, and the story can be done again", async () => {
  using bed = new AdapterBed([storyJson("US-001"), storyJson("US-002", { dependsOn: ["US-001"] })]);
  const pids = join(bed.bed.directory, "pids");
  const script = `trap "" TERM; echo half > half.txt; sh -c 'trap "" TERM; echo $$ >> ${pids}; while :; do sleep 1; done' & echo $$ >> ${pids}
while [ "$(wc -l < ${pids})" -lt 2 ]; do sleep 0.05; done; echo begun; while :; do sleep 1; done`;
  const stop = new AbortController();
  const onLine = (line: string) => {
    if (line.includes("begun")) stop.abort(SIGTERM);
  };
  const { code, last, steps } = await bed.run({ env: bed.agent(script), signal: stop.signal, onLine });
  expect(code).toBe(130);
  expect(last.payload).toMatchObject({ status: "stopped", prUrl: null });
  expect(last.payload.errors).toEqual(["The worker was stopped by SIGTERM"]);
  expect(steps).toEqual(["US-001 in_progress", "US-001 failed"]);
  expect(bed.atOrigin("half.txt")).toBe("half\n");
  expect(bed.statuses()).toEqual({ "US-001": "failed", "US-002": "pending" });
  const ids = readFileSync(pids, "utf8").trim().split("\n").map(Number);
  expect(ids.filter(isRunning)).toEqual([]);
  const again = await bed.run({ env: bed.agent('echo "by $story" > "$story.txt"') });
  expect(again.last.payload.status).toBe("completed");
  expect(bed.statuses()).toEqual({ "US-001": "completed", "US-002": "completed" });
});

test("stopped before there is a request, it says so", async () => {
  using bed = new AdapterBed();
  const stop = new AbortController();
  stop.abort(SIGTERM);
  const { code, last } = await bed.run({ signal: stop.signal });
  expect([code, last.type, last.payload.status]).toEqual([130, "completion", "stopped"]);
});

test.each([
  ["AIMI_MAX_TOKENS", "250", "250 tokens"],
  ["AIMI_MAX_TURNS", "2", "2 turns"],
  ["AIMI_MAX_SECONDS", "2", "2 seconds"],
])("a worker whose %s is used up stops with its work at origin and says which", async (name, limit, told) => {
  using bed = new AdapterBed();
  const { code, last, messages } = await bed.run({ env: { ...talker(bed), [name]: limit } });
  expect(code).toBe(130);
  expect(last.payload.status).toBe("stopped");
  expect(last.payload.errors?.[0]).toBe(`The worker's budget of ${told} is used up (${name})`);
  expect(bed.atOrigin("US-001.txt")).toBe("by US-001\n");
  expect(bed.statuses()).toEqual({ "US-001": "failed", "US-002": "pending" });
  const usage = messages.at(-2)?.payload.usage;
  expect(usage?.["inputTokens"]).toBe((usage?.["turns"] ?? 0) * 90);
});

test("a budget that is used up between two stories leaves the next one pending", async () => {
  using bed = new AdapterBed();
  const env = { ...bed.agent('echo "by $story" > "$story.txt"'), AIMI_MAX_TURNS: "1" };
  const { last, steps } = await bed.run({ env });
  expect(last.payload).toMatchObject({ status: "stopped", errors: [expect.stringContaining("1 turns")] });
  expect(steps).toEqual(["US-001 in_progress", "US-001 completed"]);
  expect(bed.statuses()).toEqual({ "US-001": "completed", "US-002": "pending" });
});

test("an agent that says nothing is ended, its story has failed, and the next one begins", async () => {
  using bed = new AdapterBed();
  const script = '[ "$story" = US-001 ] && sleep 600; echo done > done.txt';
  const { last, steps } = await bed.run({ env: { ...bed.agent(script), AIMI_MAX_SILENT_SECONDS: "1" } });
  expect(last.payload.errors).toEqual(["US-001 failed: The agent said nothing for 1 s"]);
  expect(steps).toEqual(["US-001 in_progress", "US-001 failed", "US-002 in_progress", "US-002 completed"]);
});

test("an agent that leaves a process behind which holds its output does not keep its worker", async () => {
  using bed = new AdapterBed([storyJson("US-001")]);
  const pid = join(bed.bed.directory, "pid");
  const script = `setsid sh -c 'echo $$ > ${pid}; exec sleep 60' & while [ ! -s ${pid} ]; do sleep 0.05; done; echo done`;
  const { last } = await bed.run({ env: bed.agent(script) });
  const left = Number(readFileSync(pid, "utf8"));
  expect(last.payload.status).toBe("completed");
  expect(isRunning(left)).toBe(false);
});

test("S1-29 an agent that is not there is an error of the container, and no story is lost", async () => {
  using bed = new AdapterBed();
  const env = { AIMI_AGENT: "command", AIMI_AGENT_ARGV: '["/nowhere/agent"]' };
  const { code, last } = await bed.run({ env });
  expect([code, last.type, last.payload.code]).toEqual([1, "error", "AGENT_CRASH"]);
  expect(bed.statuses()).toEqual({ "US-001": "failed", "US-002": "pending" });
});

test("what a killed session left in the workspace is kept, in a commit of its own", async () => {
  using bed = new AdapterBed([storyJson("US-001"), storyJson("US-002")]);
  await bed.run({ env: { ...bed.agent("echo one > one.txt"), AIMI_MAX_TURNS: "1" } });
  writeFileSync(join(bed.workspace, "half.txt"), "half\n");
  writeFileSync(join(bed.workspace, ".git/index.lock"), "");
  const { last } = await bed.run({ env: bed.agent("echo two > two.txt") });
  expect(last.payload.status).toBe("completed");
  expect(bed.subjects()).toEqual([
    "US-001: Story US-001",
    "Keep what an interrupted session left unfinished",
    "US-002: Story US-002",
  ]);
  expect(bed.atOrigin("half.txt")).toBe("half\n");
  expect(existsSync(join(bed.workspace, TASK_FILE))).toBe(true);
});
