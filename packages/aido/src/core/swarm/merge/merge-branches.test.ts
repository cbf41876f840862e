import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { GitBed } from "../testing/git-bed.ts";
import { Git } from "./git.ts";
import { continueMerge, mergeBranches } from "./merge-branches.ts";
import { previewMerge } from "./preview-merge.ts";

const INTO = "aimi/integration-2f61c0de";
const quiet = () => undefined;

function plan(branches: readonly string[], more: { into?: string; base?: string } = {}) {
  return {
    into: more.into ?? INTO,
    base: more.base,
    branches: branches.map((branch) => ({ branch, worker: `aimi-swarm-${branch.replaceAll("/", "-")}` })),
  };
}

test("merges finished branches in their order on a branch of its own and leaves all else as it is", async () => {
  using bed = new GitBed();
  bed.push("feat/a", { "a.txt": "a\n" });
  bed.push("feat/b", { "b.txt": "b\n" });
  // A checkout in the middle of something.
  writeFileSync(join(bed.project, "app.txt"), "changed here\n");
  writeFileSync(join(bed.project, "new.txt"), "new\n");
  bed.user("add", "new.txt");
  const before = bed.userState();
  const outcome = await mergeBranches(bed.repository, plan(["feat/b", "feat/a"]), quiet);
  expect(outcome).toMatchObject({ conflict: undefined, remaining: [], into: INTO });
  expect(bed.user("ls-tree", "-r", "--name-only", INTO).split("\n")).toEqual([
    "README.md",
    "a.txt",
    "app.txt",
    "b.txt",
    "",
  ]);
  expect(bed.user("log", "--first-parent", "--format=%s|%an", INTO).split("\n").slice(0, 2)).toEqual([
    "Merge branch 'feat/a' of aimi-swarm-feat-a|Ada",
    "Merge branch 'feat/b' of aimi-swarm-feat-b|Ada",
  ]);
  expect(bed.userState()).toEqual(before);
  expect(bed.user("for-each-ref", "refs/aido")).toBe("");
  expect(existsSync(join(bed.project, ".git/FETCH_HEAD"))).toBe(false);
  expect(bed.user("reflog", INTO)).toContain("aido swarm merge: merged feat/a");
  bed.user("fsck", "--strict");
});

test("run again, it merges nothing twice, and then only what is new", async () => {
  using bed = new GitBed();
  bed.push("feat/a", { "a.txt": "a\n" });
  const first = await mergeBranches(bed.repository, plan(["feat/a"]), quiet);
  const again = await mergeBranches(bed.repository, plan(["feat/a"]), quiet);
  expect(again.tip).toBe(first.tip);
  expect(again.merged).toMatchObject([{ branch: "feat/a", commit: undefined }]);
  bed.pushMore("feat/a", { "a.txt": "more\n" });
  const third = await mergeBranches(bed.repository, plan(["feat/a"]), quiet);
  expect(bed.user("rev-parse", `${third.tip}^1`).trim()).toBe(first.tip);
  expect(bed.user("show", `${third.tip}:a.txt`)).toBe("more\n");
});

test("stops at a conflict with whom, where and both sides; goes on when it is resolved", async () => {
  using bed = new GitBed();
  bed.push("feat/a", { "app.txt": "one\nTWO\nthree\n" });
  bed.push("feat/other", { "x.txt": "x\n" });
  bed.push("feat/b", { "app.txt": "one\nzwei\nthree\n", "README.md": null });
  bed.push("feat/c", { "c.txt": "c\n" });
  const before = bed.userState();
  const wanted = plan(["feat/other", "feat/a", "feat/b", "feat/c"]);
  const stopped = await mergeBranches(bed.repository, wanted, quiet);
  expect(stopped.merged.map(({ branch }) => branch)).toEqual(["feat/other", "feat/a"]);
  expect(stopped.remaining.map(({ branch }) => branch)).toEqual(["feat/c"]);
  expect(stopped.conflict).toMatchObject({
    branch: "feat/b",
    worker: "aimi-swarm-feat-b",
    with: [{ branch: "feat/a", worker: "aimi-swarm-feat-a" }],
    files: [
      {
        path: "app.txt",
        kinds: ["contents"],
        hunks: [{ line: 2, ours: ["TWO"], theirs: ["zwei"], omitted: 0 }],
      },
    ],
  });
  expect(bed.userState()).toEqual(before);
  // Not resolved: the same again, and nothing moves.
  expect(await continueMerge(bed.repository, undefined, quiet)).toMatchObject({
    tip: stopped.tip,
    conflict: { branch: "feat/b" },
    merged: [{ commit: undefined }, { commit: undefined }],
  });
  const place = join(bed.directory, "by-hand");
  bed.user("worktree", "add", "--quiet", place, INTO);
  await expect(continueMerge(bed.repository, INTO, quiet)).rejects.toMatchObject({
    code: "BRANCH_IN_USE",
    message: expect.stringContaining(place),
  });
  expect(() => bed.git(place, "merge", "--no-ff", "-m", "by hand", stopped.conflict?.ref ?? "")).toThrow();
  writeFileSync(join(place, "app.txt"), "one\nboth\nthree\n");
  bed.git(place, "commit", "--quiet", "-am", "by hand");
  bed.user("worktree", "remove", place);
  // With what was fetched then: origin may be gone by now, and the branch further.
  bed.pushMore("feat/c", { "later.txt": "later\n" });
  const whole = await continueMerge(bed.repository, undefined, quiet);
  expect(whole).toMatchObject({ conflict: undefined, remaining: [] });
  expect(bed.user("show", `${INTO}:app.txt`)).toBe("one\nboth\nthree\n");
  expect(bed.user("ls-tree", "--name-only", INTO).split("\n")).toEqual(["app.txt", "c.txt", "x.txt", ""]);
  expect(bed.user("for-each-ref", "refs/aido")).toBe("");
  await expect(continueMerge(bed.repository, undefined, quiet)).rejects.toMatchObject({
    code: "RESOURCE_NOT_FOUND",
  });
});

test("a file that one side removed, and one that is binary, are told by their kind", async () => {
  using bed = new GitBed({ "app.txt": "one\n", "logo.bin": "\u0000\u0001" });
  bed.push("feat/a", { "app.txt": null, "logo.bin": "\u0000\u0002" });
  bed.push("feat/b", { "app.txt": "two\n", "logo.bin": "\u0000\u0003" });
  const { conflict } = await mergeBranches(bed.repository, plan(["feat/a", "feat/b"]), quiet);
  expect(conflict?.files).toMatchObject([
    { path: "app.txt", kinds: ["modify/delete"], hunks: [] },
    { path: "logo.bin", hunks: [] },
  ]);
});

test("dry run: every pair that conflicts with its files, and nothing made", async () => {
  using bed = new GitBed();
  bed.push("a", { "app.txt": "one\nA\nthree\n" });
  bed.push("b", { "app.txt": "one\nB\nthree\n" });
  bed.push("c", { "c.txt": "c\n" });
  const before = bed.userState();
  const found = await previewMerge(bed.repository, plan(["a", "b", "c"]), quiet);
  expect(found.pairs).toEqual([{ one: "a", other: "b", files: [{ path: "app.txt", kinds: ["contents"] }] }]);
  expect(bed.userState()).toEqual(before);
  expect(bed.user("for-each-ref", "refs/aido", "refs/heads/aimi")).toBe("");
});

test("two branches whose names clash as files and folders can follow one another", async () => {
  using bed = new GitBed();
  bed.push("feat", { "a.txt": "a\n" });
  await previewMerge(bed.repository, plan(["feat"]), quiet);
  expect((await mergeBranches(bed.repository, plan(["feat"]), quiet)).conflict).toBeUndefined();
  bed.inWorkers("push", "--quiet", "origin", ":feat");
  bed.inWorkers("checkout", "--quiet", "--detach");
  bed.inWorkers("branch", "-D", "feat");
  bed.push("feat/a", { "b.txt": "b\n" });
  expect((await mergeBranches(bed.repository, plan(["feat/a"]), quiet)).conflict).toBeUndefined();
});

test("refuses a branch that is checked out, also in another work tree or while it is rebased", async () => {
  using bed = new GitBed();
  bed.push("feat/a", { "app.txt": "A\n" });
  const refused = (into: string) =>
    expect(mergeBranches(bed.repository, plan(["feat/a"], { into }), quiet)).rejects.toMatchObject({
      code: "BRANCH_IN_USE",
    });
  await refused("main");
  bed.user("branch", "work", "main");
  const place = join(bed.directory, "elsewhere");
  bed.user("worktree", "add", "--quiet", place, "work");
  await refused("work");
  writeFileSync(join(place, "app.txt"), "B\n");
  bed.git(place, "commit", "--quiet", "-am", "mine");
  bed.user("fetch", "--quiet");
  expect(() => bed.git(place, "rebase", "origin/feat/a")).toThrow();
  await refused("work");
  bed.git(place, "rebase", "--abort");
  bed.git(place, "checkout", "--quiet", "--detach");
  const { conflict } = await mergeBranches(bed.repository, plan(["feat/a"], { into: "work" }), quiet);
  expect(conflict).toMatchObject({ branch: "feat/a", with: [] });
});

test("a branch that is missing, foreign or the target itself is named, and nothing is merged", async () => {
  using bed = new GitBed();
  bed.push("feat/a", { "a.txt": "a\n" });
  const failing = (given: ReturnType<typeof plan>) => mergeBranches(bed.repository, given, quiet);
  await expect(failing(plan(["feat/a", "feat/none"]))).rejects.toMatchObject({
    code: "BRANCH_NOT_FOUND",
    message: expect.stringContaining("feat/none"),
  });
  await expect(failing(plan(["feat/a"], { base: "none" }))).rejects.toMatchObject({
    code: "BRANCH_NOT_FOUND",
  });
  await expect(failing(plan(["feat/a"], { into: "feat/a" }))).rejects.toMatchObject({
    code: "VALIDATION_ERROR",
  });
  expect(bed.user("for-each-ref", "refs/heads/aimi")).toBe("");
  bed.inWorkers("checkout", "--quiet", "--orphan", "alien");
  bed.inWorkers("commit", "--quiet", "--allow-empty", "-m", "alien");
  bed.inWorkers("push", "--quiet", "origin", "alien");
  await expect(failing(plan(["alien"]))).rejects.toMatchObject({ code: "MERGE_REFUSED" });
  bed.user("remote", "remove", "origin");
  await expect(failing(plan(["feat/a"]))).rejects.toMatchObject({
    code: "VALIDATION_ERROR",
    hint: expect.stringContaining("git remote add origin"),
  });
});

test("of two at once that move the branch, each merge is kept or refused, never lost", async () => {
  using bed = new GitBed();
  for (const name of ["a", "b", "c", "d"]) bed.push(name, { [`${name}.txt`]: name });
  const results = await Promise.allSettled([
    mergeBranches(bed.repository, plan(["a", "b"]), quiet),
    mergeBranches(bed.repository, plan(["c", "d"]), quiet),
  ]);
  for (const result of results) {
    if (result.status === "rejected")
      expect(result.reason).toMatchObject({ code: expect.stringMatching(/^(BRANCH|GIT_FETCH|RESOURCE)_/) });
  }
  await mergeBranches(bed.repository, plan(["a", "b", "c", "d"]), quiet);
  const names = bed.user("ls-tree", "--name-only", INTO).split("\n");
  expect(names).toEqual(expect.arrayContaining(["a.txt", "b.txt", "c.txt", "d.txt"]));
  const merges = bed.user("rev-list", "--merges", "--count", INTO);
  expect(Number(merges)).toBe(4);
});

test("a cancelled merge ends at once and can be run again", async () => {
  using bed = new GitBed();
  bed.push("feat/a", { "a.txt": "a\n" });
  bed.push("feat/b", { "b.txt": "b\n" });
  const abort = new AbortController();
  const cancelled = new Git(bed.repository.directory, { env: bed.env, signal: abort.signal });
  const merging = mergeBranches(cancelled, plan(["feat/a", "feat/b"]), (step) => {
    if (step.includes("feat/b")) abort.abort(new Error("enough"));
  });
  await expect(merging).rejects.toThrow("enough");
  expect(bed.user("ls-tree", "--name-only", INTO)).toContain("a.txt");
  expect(readFileSync(join(bed.project, ".git/aido-merge/aimi+integration-2f61c0de.json"), "utf8")).toContain(
    "feat/b",
  );
  const whole = await continueMerge(bed.repository, undefined, quiet);
  expect(whole.conflict).toBeUndefined();
  expect(bed.user("ls-tree", "--name-only", INTO)).toContain("b.txt");
});
