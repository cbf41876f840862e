import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { until } from "../../test/contract/driver-backend.ts";
import { storyJson, taskFileText } from "../core/swarm/testing/task-file-text.ts";
import { AdapterBed, BRANCH, CONTAINER_ID, SWARM_ID, statusesOf, TASK_FILE } from "./testing/adapter-bed.ts";

const WRITE = 'echo "by $story" > "$story.txt"; echo "I wrote $story.txt"';

test("S1-9 S1-23 S1-25 S1-27 S1-28 a worker clones, does its stories in order, tells each step, and its branch is at origin", async () => {
  using bed = new AdapterBed([
    storyJson("US-001", { priority: 3, dependsOn: ["US-003"] }),
    storyJson("US-002", { priority: 2 }),
    storyJson("US-003", { priority: 9 }),
  ]);
  const { code, last, steps, messages } = await bed.run({ env: bed.agent(WRITE) });
  expect(last.payload).toEqual({ status: "completed", prUrl: null, errors: [] });
  expect(code).toBe(0);
  expect(steps).toEqual([
    "US-002 in_progress",
    "US-002 completed",
    "US-003 in_progress",
    "US-003 completed",
    "US-001 in_progress",
    "US-001 completed",
  ]);
  expect(messages[0]).toMatchObject({ swarmId: SWARM_ID, containerId: CONTAINER_ID });
  expect(bed.subjects()).toEqual(["US-002: Story US-002", "US-003: Story US-003", "US-001: Story US-001"]);
  expect(bed.statuses()).toEqual({ "US-001": "completed", "US-002": "completed", "US-003": "completed" });
  expect(bed.atOrigin("US-003.txt")).toBe("by US-003\n");
  const told = messages.flatMap(({ payload }) => payload.changedFiles ?? []);
  expect([...told].sort()).toEqual([TASK_FILE, "US-001.txt", "US-002.txt", "US-003.txt"].sort());
  expect(messages.at(-2)?.payload.usage).toEqual({ turns: 3, inputTokens: 0, outputTokens: 0 });
  // The agent's repository is on the branch, and clean.
  expect(bed.bed.git(bed.workspace, "status", "--porcelain", "--branch")).toBe(`## ${BRANCH}\n`);
});

test("S1-27 a story that fails skips what needs it, the others go on, and the worker has completed", async () => {
  using bed = new AdapterBed([
    storyJson("US-001"),
    storyJson("US-002", { dependsOn: ["US-001"] }),
    storyJson("US-003"),
  ]);
  const script = `[ "$story" = US-001 ] && { echo half > half.txt; echo "out of ideas" >&2; exit 3; }; ${WRITE}`;
  const { code, last, steps } = await bed.run({ env: bed.agent(script) });
  expect(code).toBe(0);
  expect(last.payload.status).toBe("completed");
  expect(last.payload.errors).toEqual(["US-001 failed: The agent ended with code 3: out of ideas"]);
  expect(steps).toEqual([
    "US-001 in_progress",
    "US-001 failed",
    "US-002 skipped",
    "US-003 in_progress",
    "US-003 completed",
  ]);
  expect(bed.statuses()).toEqual({ "US-001": "failed", "US-002": "skipped", "US-003": "completed" });
  expect(bed.subjects()).toEqual(["US-001 (failed): Story US-001", "US-003: Story US-003"]);
});

test("S1-71 stories are done and pushed although nobody reads what is told, and all of it is told to who comes back", async () => {
  using bed = new AdapterBed([storyJson("US-001"), storyJson("US-002"), storyJson("US-003")]);
  let read = () => {};
  const reader = new Promise<void>((resolve) => {
    read = resolve;
  });
  const script = `${WRITE}; yes 'said and not heard' | head -c 1500000; yes 'logged' | head -c 1500000 >&2`;
  const running = bed.run({ env: bed.agent(script), reader });
  const isPushed = () => bed.bed.git(bed.bed.origin, "branch", "--list", BRANCH) !== "";
  await until("all is pushed", () => isPushed() && bed.subjects().length === 3, 15_000);
  expect(bed.statuses()).toEqual({ "US-001": "completed", "US-002": "completed", "US-003": "completed" });
  read();
  const { code, last, steps } = await running;
  expect([code, last.payload.status]).toEqual([0, "completed"]);
  expect(steps).toEqual(
    ["US-001", "US-002", "US-003"].flatMap((id) => [`${id} in_progress`, `${id} completed`]),
  );
});

test("a second worker on the branch goes on with what is left, and tries again what failed", async () => {
  using bed = new AdapterBed([storyJson("US-001"), storyJson("US-002"), storyJson("US-003")]);
  const first = await bed.run({ env: bed.agent(`[ "$story" = US-002 ] && exit 1; ${WRITE}`) });
  expect(first.last.payload.status).toBe("completed");
  const env = { ...bed.agent(WRITE), AIMI_WORKSPACE: join(bed.bed.directory, "another") };
  const { steps, last } = await bed.run({ env });
  expect(last.payload).toMatchObject({ status: "completed", errors: [] });
  expect(steps).toEqual(["US-001 completed", "US-003 completed", "US-002 in_progress", "US-002 completed"]);
  expect(bed.subjects().at(-1)).toBe("US-002: Story US-002");
});

test("a task file that git ignores stays out of the branch, and its commits tell what is done", async () => {
  using bed = new AdapterBed();
  bed.bed.push("prepare", { ".gitignore": ".aimi/\n", [TASK_FILE]: null });
  bed.bed.inWorkers("push", "--quiet", "--force", "origin", "prepare:main");
  const bring = (workspace: string) => {
    mkdirSync(join(workspace, ".aimi/tasks"), { recursive: true });
    writeFileSync(join(workspace, TASK_FILE), taskFileText([storyJson("US-001"), storyJson("US-002")]));
  };
  bring(bed.workspace);
  const first = await bed.run({ env: bed.agent(`[ "$story" = US-002 ] && exit 1; ${WRITE}`) });
  expect(first.steps).toContain("US-001 completed");
  expect(() => bed.atOrigin(TASK_FILE)).toThrow();
  const another = join(bed.bed.directory, "another");
  bring(another);
  const { steps } = await bed.run({ env: { ...bed.agent(WRITE), AIMI_WORKSPACE: another } });
  expect(steps).toEqual(["US-001 completed", "US-002 in_progress", "US-002 completed"]);
  expect(statusesOf(readFileSync(join(another, TASK_FILE), "utf8"))).toEqual({
    "US-001": "completed",
    "US-002": "completed",
  });
});

test("a story that nobody works on any more has failed, is told so, and is done again", async () => {
  using bed = new AdapterBed([
    storyJson("US-001", { status: "in_progress" }),
    storyJson("US-002", { dependsOn: ["US-001"] }),
  ]);
  const { steps } = await bed.run({ env: bed.agent(WRITE) });
  expect(steps).toEqual([
    "US-001 failed",
    "US-001 in_progress",
    "US-001 completed",
    "US-002 in_progress",
    "US-002 completed",
  ]);
});

test("commits and branches that the agent makes itself are kept behind each other, and never forced", async () => {
  using bed = new AdapterBed();
  const script = `${WRITE}
git config user.email agent@example.com; git config user.name Agent
if [ "$story" = US-001 ]; then git add -A && git commit -qm "my own"; else git checkout -q --orphan other && git add -A && git commit -qm "elsewhere"; fi`;
  const { last } = await bed.run({ env: bed.agent(script) });
  expect(last.payload).toMatchObject({ status: "completed", errors: [] });
  expect(bed.subjects()).toEqual(["my own", "US-001: Story US-001", "US-002: Story US-002"]);
  expect(bed.atOrigin("US-002.txt")).toBe("by US-002\n");
});

test("what an agent makes of the task file is put back, also when it is a link then", async () => {
  using bed = new AdapterBed();
  const secret = join(bed.bed.directory, "outside");
  const script = `${WRITE}
if [ "$story" = US-001 ]; then sed -i 's/pending/completed/g' ${TASK_FILE}; else rm -rf .aimi && mkdir ${secret} && ln -s ${secret} .aimi; fi`;
  const { last, steps } = await bed.run({ env: bed.agent(script) });
  expect(last.payload.errors).toEqual([]);
  expect(steps.at(-1)).toBe("US-002 completed");
  expect(bed.statuses()).toEqual({ "US-001": "completed", "US-002": "completed" });
});

test("a worker refuses origin's default branch as its own, and leaves it alone", async () => {
  using bed = new AdapterBed([storyJson("US-001")]);
  const before = bed.bed.git(bed.bed.origin, "rev-parse", "main");
  const { code, last } = await bed.run({ env: bed.agent(WRITE), payload: { branchName: "main" } });
  expect([code, last.payload.code]).toEqual([1, "INVALID_INPUT"]);
  expect(last.payload.message).toContain("main is the default branch of origin");
  expect(bed.bed.git(bed.bed.origin, "rev-parse", "main")).toBe(before);
});

test("a branch that is at origin without any worker's commit is warned of, and gone on with", async () => {
  using bed = new AdapterBed([storyJson("US-001"), storyJson("US-002")]);
  bed.bed.push(BRANCH, { "theirs.txt": "theirs\n" });
  const first = await bed.run({ env: { ...bed.agent(WRITE), AIMI_MAX_TURNS: "1" } });
  expect(first.stderr).toContain(`warning: ${BRANCH} is at origin with commits that no worker made`);
  const second = await bed.run({ env: bed.agent(WRITE) });
  expect(second.last.payload.status).toBe("completed");
  expect(second.stderr).not.toContain("warning:");
  expect(bed.atOrigin("theirs.txt")).toBe("theirs\n");
});

test("a branch that others pushed to meanwhile is not overwritten, and the worker has failed with its work kept", async () => {
  using bed = new AdapterBed([storyJson("US-001")]);
  const elsewhere = join(bed.bed.directory, "elsewhere");
  const script = `${WRITE}
git clone -q ${bed.bed.origin} ${elsewhere} && cd ${elsewhere} && git checkout -qb ${BRANCH} && echo x > x && git add x && git -c user.name=B -c user.email=b@example.com commit -qm theirs && git push -q origin ${BRANCH}`;
  const { code, last } = await bed.run({ env: bed.agent(script) });
  expect(code).toBe(1);
  expect(last.payload).toMatchObject({ status: "failed", prUrl: null });
  expect(last.payload.errors?.[0]).toMatch(/not pushed.*feat\/sign-in/);
  expect(bed.subjects()).toEqual(["theirs"]);
  expect(bed.bed.git(bed.workspace, "show", `${BRANCH}:US-001.txt`)).toBe("by US-001\n");
});
