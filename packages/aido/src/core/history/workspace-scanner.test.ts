import { expect, test } from "vitest";
import { type ScriptedWorkspace, scriptedWorkspace } from "../../../test/history/scripted-workspace.ts";
import { KnownEntries } from "./known-entries.ts";
import { WorkspaceScanner } from "./workspace-scanner.ts";

const SECOND = 1_000_000_000n;

function makeScanner() {
  const workspace = scriptedWorkspace();
  const scanner = new WorkspaceScanner(workspace, new KnownEntries(), () => workspace.nowNs);
  return {
    workspace,
    scanner,
    /** A look a while after the last change, so that nothing can have changed in the same tick. */
    async look() {
      workspace.nowNs += SECOND;
      const { removed, changed } = await scanner.changes();
      workspace.nowNs += SECOND;
      return { removed: removed.sort(), changed: changed.map(({ path }) => path).sort() };
    },
  };
}

function fill(workspace: ScriptedWorkspace): void {
  workspace.write("a/b/one", "1");
  workspace.write("a/two", "2");
  workspace.link("a/link", "two");
  workspace.write("top", "3");
}

test("the first look tells all, the next ones only what changed", async () => {
  const { workspace, look } = makeScanner();
  fill(workspace);
  expect(await look()).toEqual({ removed: [], changed: ["a/b/one", "a/link", "a/two", "top"] });
  expect(await look()).toEqual({ removed: [], changed: [] });
  workspace.write("a/b/one", "changed");
  workspace.remove("a/two");
  workspace.write("a/new", "n");
  expect(await look()).toEqual({ removed: ["a/two"], changed: ["a/b/one", "a/new"] });
  expect(workspace.asked.at(-1)).toMatch(/^scan \d+$/);
});

test("a moved directory is gone where it was and told whole where it is", async () => {
  const { workspace, look } = makeScanner();
  fill(workspace);
  await look();
  workspace.move("a/b", "moved");
  expect(await look()).toEqual({ removed: ["a/b"], changed: ["moved/one"] });
  workspace.move("a", "moved/a");
  expect(await look()).toEqual({ removed: ["a"], changed: ["moved/a/link", "moved/a/two"] });
});

test("what was told before a whole look became necessary is not lost", async () => {
  const { workspace, look } = makeScanner();
  fill(workspace);
  await look();
  workspace.write("a/two", "changed");
  workspace.write("top", "changed");
  workspace.move("a/b", "z");
  expect(await look()).toEqual({ removed: ["a/b"], changed: ["a/two", "top", "z/one"] });
});

test("a directory in another's place, with all its old times, is another one", async () => {
  const { workspace, look } = makeScanner();
  fill(workspace);
  workspace.write("other/b/one", "else");
  await look();
  workspace.remove("a");
  workspace.move("other", "a");
  expect(await look()).toEqual({ removed: ["a/link", "a/two", "other"], changed: ["a/b/one"] });
});

test.each([
  [
    "a file",
    "a directory",
    (w: ScriptedWorkspace) => [w.remove("top"), w.write("top/in", "x")],
    ["top"],
    ["top/in"],
  ],
  ["a directory", "a file", (w: ScriptedWorkspace) => [w.remove("a"), w.write("a", "x")], ["a"], ["a"]],
  ["a file", "a link", (w: ScriptedWorkspace) => [w.remove("top"), w.link("top", "x")], [], ["top"]],
  [
    "a link",
    "a file",
    (w: ScriptedWorkspace) => [w.remove("a/link"), w.write("a/link", "x")],
    [],
    ["a/link"],
  ],
  ["a file", "a pipe", (w: ScriptedWorkspace) => [w.remove("top"), w.pipe("top")], ["top"], []],
])("%s that became %s", async (_from, _to, change, removed, changed) => {
  const { workspace, look } = makeScanner();
  fill(workspace);
  await look();
  change(workspace);
  expect(await look()).toEqual({ removed, changed });
});

test("what changed in the tick of the last look is looked at again, and then no more", async () => {
  const { workspace, scanner } = makeScanner();
  workspace.write("racy", "1");
  const paths = async () => (await scanner.changes()).changed.map(({ path }) => path);
  expect(await paths()).toEqual(["racy"]);
  // Within one tick neither the change time nor the inode tells.
  workspace.write("racy", "2");
  expect(await paths()).toEqual(["racy"]);
  workspace.nowNs += SECOND;
  expect(await paths()).toEqual(["racy"]);
  expect(await paths()).toEqual([]);
});

test("a sandbox whose clock is behind ours hides nothing", async () => {
  const workspace = scriptedWorkspace();
  const scanner = new WorkspaceScanner(workspace, new KnownEntries(), () => workspace.nowNs + 3600n * SECOND);
  workspace.write("a", "1");
  await scanner.changes();
  workspace.nowNs += SECOND;
  workspace.write("a", "2");
  expect((await scanner.changes()).changed.map(({ path }) => path)).toEqual(["a"]);
});

test("repositories in the workspace are told like all else, paths that cannot be named are passed over", async () => {
  const { workspace, look } = makeScanner();
  workspace.write("inner/.git/HEAD", "x");
  workspace.write("inner/file", "x");
  workspace.write(`${"d/".repeat(2047)}f`, "x");
  workspace.write(`${"d/".repeat(2047)}fg`, "x");
  expect(await look()).toEqual({
    removed: [],
    changed: [`${"d/".repeat(2047)}f`, "inner/.git/HEAD", "inner/file"],
  });
});

test.each([
  ["a path that leads out", "../x"],
  ["an absolute path", "/etc/passwd"],
  ["a path with an empty part", "a//b"],
  ["a path with a dot", "a/./b"],
])("%s is refused", async (_what, path) => {
  const workspace = scriptedWorkspace();
  workspace.write(path, "x");
  const scanner = new WorkspaceScanner(workspace, new KnownEntries());
  await expect(scanner.changes()).rejects.toMatchObject({ code: "GIT_COMMIT_FAILED" });
});
