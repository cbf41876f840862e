import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { scriptedWorkspace } from "../../../test/history/scripted-workspace.ts";
import { GitRepository } from "./git-repository.ts";
import { SandboxHistory } from "./sandbox-history.ts";

function makeHistory() {
  const place = mkdtempSync(join(tmpdir(), "aido-history-"));
  const directory = join(place, "history.git");
  const workspace = scriptedWorkspace();
  const open = (maxBytes?: number) => new SandboxHistory(new GitRepository(directory, maxBytes), workspace);
  let history = open();
  let count = 0;
  return {
    workspace,
    directory,
    open,
    get history() {
      return history;
    },
    reopen(maxBytes?: number) {
      history.close();
      history = open(maxBytes);
    },
    /** Records, and tells which files were read for it. */
    async record(by = history) {
      // Real time goes on too: what changed long ago is settled.
      workspace.nowNs += 1_000_000_000n;
      const from = workspace.asked.length;
      count += 1;
      const added = await by.record({
        execId: `exec_${count}`,
        at: new Date(count * 1000),
        message: "Update",
      });
      const read = workspace.asked.slice(from).filter((asked) => asked.startsWith("cat "));
      return { ...added, read: read.map((asked) => asked.slice(4)) };
    },
    files: async () => (await history.list(100)).map(({ files }) => files),
    fsck: () =>
      execFileSync("git", ["--git-dir", directory, "fsck", "--strict"], { encoding: "utf8", stdio: "pipe" }),
    [Symbol.dispose]: () => {
      history.close();
      rmSync(place, { recursive: true, force: true });
    },
  };
}

test("an entry for each change, none without one; each exec stands for an entry", async () => {
  using made = makeHistory();
  made.workspace.write("d/a", "1");
  const one = await made.record();
  const idle = await made.record();
  expect(idle).toMatchObject({ commitId: one.commitId, isNew: false });
  made.workspace.remove("d");
  const two = await made.record();
  expect(made.history.commitOf("exec_2")).toBe(one.commitId);
  expect(made.history.commitOf("exec_3")).toBe(two.commitId);
  expect(() => made.history.commitOf("exec_9")).toThrow("no entry");
  expect(await made.files()).toEqual([["d/a"], ["d/a"]]);
  // The workspace is empty now, and so is its tree.
  expect(made.fsck()).toBe("");
});

test("a look says which files are other than they were or gone, also without a saved state", async () => {
  using made = makeHistory();
  for (const path of ["a", "d/b", "d/c", "same"]) made.workspace.write(path, "1");
  expect([...(await made.record()).files].sort()).toEqual(["a", "d/b", "d/c", "same"]);
  made.reopen();
  rmSync(join(made.directory, "workspace.state"));
  made.workspace.write("a", "2");
  made.workspace.write("same", "1");
  made.workspace.remove("d");
  expect([...(await made.record()).files].sort()).toEqual(["a", "d/b", "d/c"]);
});

test("a new process reads only what changed since the last one", async () => {
  using made = makeHistory();
  for (let i = 0; i < 50; i++) made.workspace.write(`d${i}/f`, `${i}`);
  expect((await made.record()).read).toHaveLength(50);
  await made.record();
  made.reopen();
  made.workspace.write("d7/f", "changed");
  expect((await made.record()).read).toEqual(["d7/f"]);
  made.reopen();
  made.workspace.remove("d8");
  expect((await made.record()).read).not.toContain("d9/f");
  expect((await made.files()).slice(0, 2)).toEqual([["d8/f"], ["d7/f"]]);
});

test.each([
  ["cut off", (text: string) => text.slice(0, -10)],
  ["of another version", (text: string) => text.replace("workspace 1", "workspace 2")],
  ["with a path that leads out", (text: string) => text.replace("d/a", "../a")],
  ["empty", () => ""],
])("a saved state that is %s is not used", async (_what, spoil) => {
  using made = makeHistory();
  made.workspace.write("d/a", "1");
  made.workspace.write("b", "1");
  await made.record();
  made.history.close();
  const state = join(made.directory, "workspace.state");
  writeFileSync(state, spoil(readFileSync(state, "latin1")), "latin1");
  made.reopen();
  made.workspace.remove("b");
  expect((await made.record()).read).toEqual(["d/a"]);
  expect((await made.files())[0]).toEqual(["b"]);
});

test("a look that fails half way loses no change", async () => {
  using made = makeHistory();
  made.workspace.write("a", "1");
  await made.record();
  made.workspace.write("a", "2");
  made.workspace.write("b", "2");
  made.workspace.beforeCat = () => {
    throw new Error("the sandbox is gone");
  };
  await expect(made.record()).rejects.toThrow("the sandbox is gone");
  made.workspace.beforeCat = () => undefined;
  await made.record();
  expect((await made.files())[0]).toEqual(["a", "b"]);
  expect(made.fsck()).toBe("");
});

test("a file that goes between the scan and the reading is no part of the entry", async () => {
  using made = makeHistory();
  made.workspace.write("a", "1");
  made.workspace.write("b", "1");
  made.workspace.beforeCat = () => made.workspace.remove("b");
  await made.record();
  made.workspace.beforeCat = () => undefined;
  await made.record();
  expect(await made.files()).toEqual([["a"]]);
});

test("two processes see each other's entries and add none for what is recorded", async () => {
  using made = makeHistory();
  const other = made.open();
  made.workspace.write("a", "1");
  await made.record();
  expect((await made.record(other)).isNew).toBe(false);
  made.workspace.write("b", "1");
  await made.record(other);
  expect((await made.record()).isNew).toBe(false);
  made.workspace.write("a", "2");
  const [one, two] = await Promise.all([made.record(), made.record(other)]);
  expect([one.isNew, two.isNew].filter(Boolean)).toHaveLength(1);
  expect(one.commitId).toBe(two.commitId);
  expect(await made.files()).toEqual([["a"], ["b"], ["a"]]);
  other.close();
});

test("a new process writes no object again that the last one has written", async () => {
  using made = makeHistory();
  for (let i = 0; i < 600; i++) made.workspace.write(`d${i}/f`, `${i}`);
  await made.record();
  await made.record();
  const count = () =>
    execFileSync("git", ["--git-dir", made.directory, "count-objects", "-v"], { encoding: "utf8" });
  const before = count();
  made.reopen();
  await made.record();
  expect(count()).toBe(before);
  made.reopen();
  made.workspace.write("d5/f", "changed");
  await made.record();
  // The first commit, and now a file, its directory, the root and a commit.
  expect(before).toContain("count: 1\n");
  expect(count()).toContain("count: 5\n");
  expect(made.fsck()).toBe("");
});

test("many files make packs, and the next change is one of its own", async () => {
  using made = makeHistory();
  for (let i = 0; i < 1_000; i++) made.workspace.write(`d${i % 10}/f${i}`, `${i}`);
  await made.record();
  made.workspace.write("d1/f1", "changed");
  await made.record();
  expect((await made.files()).map((files) => files.length)).toEqual([1, 1_000]);
  expect(made.fsck()).toBe("");
});

test("a history that takes what it may keeps nothing more, in whichever process, and stays readable", async () => {
  using made = makeHistory();
  const limit = 3 * 1024 * 1024;
  const full = { code: "HISTORY_FULL", details: { maxBytes: limit } };
  // As many as fill it, each in a process of its own.
  for (let i = 0; i < 3; i++) {
    made.reopen(limit);
    made.workspace.write(`random${i}`, randomBytes(1024 * 1024).toString("latin1"));
    await made.record();
  }
  made.workspace.write("too much", "1");
  const other = made.open(limit);
  const looks = made.workspace.asked.length;
  await expect(made.record()).rejects.toMatchObject(full);
  await expect(made.record(other)).rejects.toMatchObject(full);
  expect(made.workspace.asked).toHaveLength(looks);
  other.close();
  expect(await made.files()).toHaveLength(3);
  expect(made.fsck()).toBe("");
  made.reopen(2 * limit);
  await made.record();
  expect((await made.files())[0]).toEqual(["too much"]);
});

test("one look does not add much more than there is room for", async () => {
  using made = makeHistory();
  made.reopen(1024 * 1024);
  for (let i = 0; i < 20; i++) made.workspace.write(`f${i}`, randomBytes(500_000).toString("latin1"));
  await expect(made.record()).rejects.toMatchObject({ code: "HISTORY_FULL" });
  const kept = execFileSync("git", ["--git-dir", made.directory, "count-objects"], { encoding: "utf8" });
  expect(kept).toMatch(/^3 objects/);
  expect(await made.files()).toEqual([]);
});
