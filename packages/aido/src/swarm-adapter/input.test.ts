import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { storyJson } from "../core/swarm/testing/task-file-text.ts";
import { AdapterBed, TASK_FILE } from "./testing/adapter-bed.ts";

const AGENT = { AIMI_AGENT: "command", AIMI_AGENT_ARGV: '["true"]' };

test.each([
  ["nothing", ""],
  ["an empty line", "\n"],
  ["broken JSON", '{"type":\n'],
  ["what is no object", "[]\n"],
  ["bytes that are no text", "\xff\xfe\n"],
  ["more than 64 KB", `{"a":"${"x".repeat(70_000)}"}\n`],
])("S1-30 %s as input is answered with INVALID_INPUT", async (_, line) => {
  using bed = new AdapterBed();
  const { code, last } = await bed.run({ env: AGENT, line });
  expect([code, last.type, last.payload.code]).toEqual([1, "error", "INVALID_INPUT"]);
});

test("S1-30 a message of another type, or without a payload, is answered with INVALID_INPUT", async () => {
  using bed = new AdapterBed();
  for (const request of [
    { type: "completion", payload: { status: "completed", prUrl: null, errors: [] } },
    { payload: undefined },
  ]) {
    const { last } = await bed.run({ env: AGENT, request });
    expect(last.payload.code).toBe("INVALID_INPUT");
  }
});

test.each([
  [{ taskFilePath: "../tasks.json" }],
  [{ branchName: "-x" }],
  [{ repoUrl: "file:///etc" }],
  [{ repoUrl: "ext::sh -c id" }],
  [{ envVars: { A: "x; y" } }],
  [{ envVars: { lower: "x" } }],
])("S1-30 a payload with %j is answered with TASK_FILE_INVALID", async (payload) => {
  using bed = new AdapterBed();
  const { last } = await bed.run({ env: AGENT, payload });
  expect(last.payload.code).toBe("TASK_FILE_INVALID");
});

test("S1-72 without a key for Claude Code it says which variable is missing", async () => {
  using bed = new AdapterBed();
  const { code, last } = await bed.run();
  expect([code, last.payload.code]).toEqual([1, "MISSING_ENV_VAR"]);
  expect(last.payload.message).toContain("ANTHROPIC_API_KEY");
});

test("a wrong budget is answered before anything is cloned", async () => {
  using bed = new AdapterBed();
  const { last } = await bed.run({ env: { ...AGENT, AIMI_MAX_TURNS: "many" } });
  expect(last.payload).toMatchObject({
    code: "INVALID_INPUT",
    message: expect.stringContaining("AIMI_MAX_TURNS"),
  });
});

test("a repository that is not there, and a task file that is not in it, are told apart", async () => {
  using bed = new AdapterBed();
  const gone = await bed.run({ env: AGENT, payload: { repoUrl: "git@test.invalid:team/none.git" } });
  expect(gone.last.payload.code).toBe("GIT_CLONE_FAILED");
  using other = new AdapterBed();
  const none = await other.run({ env: AGENT, payload: { taskFilePath: ".aimi/tasks/none.json" } });
  expect(none.last.payload.code).toBe("TASK_FILE_NOT_FOUND");
});

test("a task file that breaks a rule is told with line and field", async () => {
  using bed = new AdapterBed([storyJson("US-001", { priority: "high" })]);
  const { last } = await bed.run({ env: AGENT });
  expect(last.payload.code).toBe("TASK_FILE_INVALID");
  expect(last.payload.message).toMatch(/userStories\[0\]\.priority.*-tasks\.json:\d+/);
});

test("a workspace whose branch has parted from origin's is left as it is", async () => {
  using bed = new AdapterBed([storyJson("US-001"), storyJson("US-002")]);
  await bed.run({ env: { ...bed.agent("echo one > one.txt"), AIMI_MAX_TURNS: "1" } });
  bed.bed.pushMore("main", {});
  bed.bed.push("feat/sign-in", { "theirs.txt": "x\n" });
  const before = bed.bed.git(bed.workspace, "rev-parse", "HEAD");
  const { last } = await bed.run({ env: AGENT });
  expect(last.payload.code).toBe("GIT_CHECKOUT_FAILED");
  expect(bed.bed.git(bed.workspace, "rev-parse", "HEAD")).toBe(before);
});

test("a workspace that an image brings is used: its other files stay, and the branch begins where origin is now", async () => {
  using bed = new AdapterBed([storyJson("US-001")]);
  bed.bed.git(bed.bed.directory, "clone", "--quiet", bed.bed.origin, bed.workspace);
  bed.bed.push("more", { "new.txt": "new\n" });
  bed.bed.inWorkers("push", "--quiet", "origin", "more:main");
  writeFileSync(join(bed.workspace, "README.md"), "changed by the image\n");
  writeFileSync(join(bed.workspace, ".git/info/exclude"), "deps\n");
  writeFileSync(join(bed.workspace, "deps"), "brought\n");
  const { last } = await bed.run({ env: bed.agent("cat new.txt deps > seen.txt") });
  expect(last.payload.status).toBe("completed");
  expect(bed.atOrigin("seen.txt")).toBe("new\nbrought\n");
  expect(bed.atOrigin(TASK_FILE)).toContain("completed");
});

test("S1-13 S1-15 what an image brought and no branch has is there for the agent, and in no commit", async () => {
  using bed = new AdapterBed([storyJson("US-001")], { "src/kept.txt": "kept\n" });
  const odd = "odd [x]*\n\\ name ";
  for (const name of [
    "node_modules/dep/index.js",
    ".aimi/tasks/2026-01-05-other-tasks.json",
    odd,
    "#notes",
    "!loud",
  ]) {
    const path = join(bed.workspace, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, "brought\n");
  }
  const script = `cat node_modules/dep/index.js '${odd}' > seen.txt; echo new > "odd y"; echo more >> src/kept.txt`;
  const { last, stdout } = await bed.run({ env: bed.agent(script) });
  expect(last.payload).toMatchObject({ status: "completed", errors: [] });
  const files = bed.bed.git(bed.bed.origin, "ls-tree", "-r", "-z", "--name-only", "feat/sign-in");
  expect(files.split("\0").sort()).toEqual(
    ["", TASK_FILE, "README.md", "odd y", "seen.txt", "src/kept.txt"].sort(),
  );
  expect(bed.atOrigin("seen.txt")).toBe("brought\nbrought\n");
  expect(bed.atOrigin("src/kept.txt")).toBe("kept\nmore\n");
  expect(stdout).not.toContain("node_modules");
});
