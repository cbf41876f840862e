import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SwarmCli } from "../../testing/swarm-cli.ts";

let cli: SwarmCli;
beforeEach(() => {
  cli = new SwarmCli();
});
afterEach(() => cli[Symbol.dispose]());

test("a task file that was changed since its commit is warned of: its worker gets the committed one", async () => {
  for (const name of ["a", "b", "c"]) cli.task(name);
  cli.bed.user("add", ".aimi/tasks/a-tasks.json", ".aimi/tasks/b-tasks.json");
  cli.bed.user("commit", "--quiet", "-m", "tasks");
  cli.task("a", { branchName: "feat/other" });
  const { code, stderr } = await cli.aido(["swarm", "--all"]);
  expect(code).toBe(0);
  expect(stderr).toContain(".aimi/tasks/a-tasks.json has changes that are not committed");
  // One that git does not know is in the project's image, and so is one that is as it was committed.
  expect(stderr).not.toMatch(/[bc]-tasks.json has changes/);
});

test("S1-72 a branch that is at origin with commits of others is warned of with file and field; a worker's own is not", async () => {
  cli.bed.push("feat/theirs", { "theirs.txt": "x\n" });
  cli.bed.pushMore("feat/theirs", { "theirs.txt": "y\n" });
  cli.bed.push("feat/ours", { "ours.txt": "x\n" });
  cli.bed.inWorkers("commit", "--quiet", "--amend", "-m", "US-001: x\n\nAimi-Story: US-001 completed x.json");
  cli.bed.inWorkers("push", "--quiet", "--force", "origin", "feat/ours");
  cli.bed.inWorkers("push", "--quiet", "origin", "origin/main:refs/heads/feat/empty");
  for (const name of ["theirs", "ours", "empty", "new"]) cli.task(name);
  // What this clone knows of origin is asked, not origin.
  cli.bed.user("fetch", "--quiet", cli.bed.origin, "+refs/heads/*:refs/remotes/origin/*");
  const { code, stderr } = await cli.aido(["swarm", "--all"]);
  expect(code).toBe(0);
  expect(stderr.split("\n").filter((line) => line.includes("metadata.branchName"))).toEqual([
    "warning: .aimi/tasks/theirs-tasks.json: metadata.branchName: feat/theirs is at origin with 2 commits that no worker made; its worker goes on from there. Set another metadata.branchName to leave it alone",
  ]);
});

test("the first path that is not committed is named, whatever is in its name", async () => {
  cli.task("a");
  writeFileSync(join(cli.bed.project, "a\u001b[31m.txt"), "x");
  const { code, stderr } = await cli.aido(["swarm", "--all"]);
  expect(code).toBe(0);
  expect(stderr).toContain("not committed, the first in a\\x1b[31m.txt;");
});
