import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { storyJson, taskFileText } from "../core/swarm/testing/task-file-text.ts";
import { AdapterBed, TASK_FILE } from "./testing/adapter-bed.ts";
import { trap } from "./testing/trap.ts";

const WRITE = 'echo "by $story" > "$story.txt"';

test("hooks, file monitors, filters and helpers that a workspace's repository names are never started by the adapter", async () => {
  using bed = new AdapterBed([storyJson("US-001")], {
    ".gitattributes": "*.txt filter=evil diff=evil merge=evil\n",
  });
  const { program, isSprung } = trap(bed);
  bed.bed.git(bed.bed.directory, "clone", "--quiet", bed.bed.origin, bed.workspace);
  const config = [
    ...["core.fsmonitor", "core.sshCommand", "core.editor", "core.pager", "gpg.program", "credential.helper"],
    ...[
      "filter.evil.clean",
      "filter.evil.smudge",
      "filter.evil.process",
      "diff.evil.textconv",
      "diff.external",
    ],
    ...[
      "merge.evil.driver",
      "uploadpack.packObjectsHook",
      "core.alternateRefsCommand",
      "remote.origin.uploadpack",
    ],
  ];
  for (const name of config) bed.bed.git(bed.workspace, "config", name, program);
  bed.bed.git(bed.workspace, "config", "commit.gpgSign", "true");
  bed.bed.git(bed.workspace, "config", "core.hooksPath", join(bed.workspace, "hooks"));
  bed.bed.git(bed.workspace, "config", `url.ext::${program}.insteadOf`, "git@test.invalid:");
  mkdirSync(join(bed.workspace, "hooks"));
  const hooks = [
    "pre-commit",
    "post-commit",
    "reference-transaction",
    "post-checkout",
    "pre-push",
    "post-index-change",
  ];
  for (const name of [...hooks, "post-merge", "commit-msg", "fsmonitor-watchman"]) {
    symlinkSync(program, join(bed.workspace, "hooks", name));
  }
  const { last } = await bed.run({ env: bed.agent(WRITE) });
  expect(last.payload).toMatchObject({ status: "completed", errors: [] });
  expect(bed.atOrigin("US-001.txt")).toBe("by US-001\n");
  expect(isSprung()).toBe(false);
});

test("submodules are not fetched, and stay as they are in the tree", async () => {
  using bed = new AdapterBed([storyJson("US-001")]);
  const { program, isSprung } = trap(bed);
  bed.bed.push("sub", {
    ".gitmodules": `[submodule "x"]\n\tpath = x\n\turl = ext::${program}\n\tupdate = !${program}\n`,
  });
  const commit = bed.bed.inWorkers("rev-parse", "HEAD").trim();
  bed.bed.inWorkers("update-index", "--add", "--cacheinfo", `160000,${commit},x`);
  bed.bed.inWorkers("commit", "--quiet", "-m", "a submodule");
  bed.bed.inWorkers("push", "--quiet", "--force", "origin", "HEAD:main");
  const { last } = await bed.run({ env: bed.agent(WRITE) });
  expect(last.payload).toMatchObject({ status: "completed", errors: [] });
  expect(bed.bed.git(bed.bed.origin, "ls-tree", "feat/sign-in", "x")).toContain(commit);
  expect(isSprung()).toBe(false);
});

test("repositories within the tree, with or without commits, keep nothing else from being committed", async () => {
  using bed = new AdapterBed();
  const { program, isSprung } = trap(bed);
  const script = `${WRITE}; git init -q empty; git -C empty config core.fsmonitor ${program}
git init -q full; git -C full config --unset core.fsmonitor; git -C full -c user.name=x -c user.email=x@example.com commit -q --allow-empty -m x; git -C full config core.fsmonitor ${program}`;
  const { last } = await bed.run({ env: bed.agent(script) });
  expect(last.payload).toMatchObject({ status: "completed", errors: [] });
  expect(bed.atOrigin("US-001.txt")).toBe("by US-001\n");
  expect(bed.statuses()).toEqual({ "US-001": "completed", "US-002": "completed" });
  const inner = bed.bed.git(join(bed.workspace, "full"), "-c", "core.fsmonitor=false", "rev-parse", "HEAD");
  expect(bed.bed.git(bed.bed.origin, "ls-tree", "feat/sign-in", "full")).toContain(inner.trim());
  expect(isSprung()).toBe(false);
});

test("a story whose files git does not take has failed and says which, and the rest of it is kept", async () => {
  using bed = new AdapterBed([storyJson("US-001"), storyJson("US-002", { dependsOn: ["US-001"] })]);
  // A name that git refuses wherever it runs and whoever runs it.
  const script = `${WRITE}; echo lost > "git~1"; git init -q empty`;
  const { code, last, steps, stderr } = await bed.run({ env: bed.agent(script) });
  expect(code).toBe(0);
  expect(steps).toEqual(["US-001 in_progress", "US-001 failed", "US-002 skipped"]);
  expect(last.payload.errors).toEqual([
    expect.stringMatching(/^US-001 failed: Not committed: git~1 \(git add failed: .*invalid path 'git~1'/),
  ]);
  expect(stderr).toContain("invalid path 'git~1'");
  expect(bed.atOrigin("US-001.txt")).toBe("by US-001\n");
  expect(bed.statuses()).toEqual({ "US-001": "failed", "US-002": "skipped" });
});

test("names with line breaks and terminal codes are told and committed as they are", async () => {
  using bed = new AdapterBed([storyJson("US-001")]);
  const script = `printf x > "$(printf 'a\\nb')"; printf x > "$(printf 'c\\033[2Jd')"; printf '\\033[2J\\033]0;title\\007red \\033[31malert\\033[0m'`;
  const { messages } = await bed.run({ env: bed.agent(script) });
  const told = messages.flatMap(({ payload }) => payload.changedFiles ?? []);
  expect(told).toEqual(expect.arrayContaining(["a\nb", "c\u001b[2Jd"]));
  const done = messages.find(({ payload }) => payload.status === "completed");
  expect(done?.payload.output).toBe("red alert");
});

test("a task file that is a link, or lies behind one, is refused", async () => {
  using bed = new AdapterBed();
  const outside = join(bed.bed.directory, "outside.json");
  writeFileSync(outside, taskFileText());
  bed.bed.push("linked", { [TASK_FILE]: null });
  symlinkSync(outside, join(bed.bed.directory, "workers", TASK_FILE));
  bed.bed.inWorkers("add", "--all");
  bed.bed.inWorkers("commit", "--quiet", "-m", "a link");
  bed.bed.inWorkers("push", "--quiet", "--force", "origin", "HEAD:main");
  const file = await bed.run({ env: bed.agent(WRITE) });
  expect(file.last.payload).toMatchObject({
    code: "TASK_FILE_INVALID",
    message: expect.stringContaining("is a link"),
  });
  expect(readFileSync(outside, "utf8")).toBe(taskFileText());

  using other = new AdapterBed();
  const away = join(other.bed.directory, "away");
  mkdirSync(join(away, "tasks"), { recursive: true });
  writeFileSync(join(away, TASK_FILE.slice(".aimi/".length)), taskFileText());
  other.bed.push("linked", { [TASK_FILE]: null });
  rmSync(join(other.bed.directory, "workers/.aimi"), { recursive: true });
  symlinkSync(away, join(other.bed.directory, "workers/.aimi"));
  other.bed.inWorkers("add", "--all");
  other.bed.inWorkers("commit", "--quiet", "-m", "a link");
  other.bed.inWorkers("push", "--quiet", "--force", "origin", "HEAD:main");
  const directory = await other.run({ env: other.agent(WRITE) });
  expect(directory.last.payload).toMatchObject({
    code: "TASK_FILE_INVALID",
    message: expect.stringContaining(".aimi"),
  });
});

test("a .git that is a link or a file is refused", async () => {
  using bed = new AdapterBed();
  mkdirSync(bed.workspace);
  writeFileSync(join(bed.workspace, ".git"), `gitdir: ${bed.bed.origin}\n`);
  const { last } = await bed.run({ env: bed.agent(WRITE) });
  expect(last.payload.code).toBe("GIT_CLONE_FAILED");
});

test("S1-30 much output and many files stay within the limits of messages", async () => {
  using bed = new AdapterBed([storyJson("US-001")]);
  const long = "d".repeat(200);
  const script = `mkdir -p ${long}/${long}; i=0; while [ $i -lt 300 ]; do : > "${long}/${long}/f$i"; i=$((i+1)); done
printf '\\360\\237\\230\\200%.0s' $(seq 3000) >&2; printf 'y%.0s' $(seq 5000); exit 1`;
  const { stdout, messages } = await bed.run({ env: bed.agent(script) });
  expect(Math.max(...stdout.split("\n").map((line) => Buffer.byteLength(line)))).toBeLessThanOrEqual(
    64 * 1024,
  );
  const told = messages.flatMap(({ payload }) => payload.changedFiles ?? []);
  expect(told.filter((path) => path.startsWith(long))).toHaveLength(300);
  expect(new Set(told).size).toBe(told.length);
});
