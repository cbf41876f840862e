import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { blobObject, commitObject, gitObject, treeObject } from "./git-objects.ts";
import { GitRepository } from "./git-repository.ts";

const AT = new Date("2024-01-02T03:04:05.678Z");

function makeRepository() {
  const place = mkdtempSync(join(tmpdir(), "aido-repository-"));
  const directory = join(place, "history.git");
  const repository = new GitRepository(directory);
  repository.init();
  const git = (...args: string[]) =>
    execFileSync("git", ["--git-dir", directory, ...args], {
      encoding: "latin1",
      maxBuffer: 64 * 1024 * 1024,
      stdio: ["ignore", "pipe", "pipe"],
    });
  return {
    repository,
    git,
    place,
    [Symbol.dispose]: () => {
      repository.close();
      rmSync(place, { recursive: true, force: true });
    },
  };
}

test("git reads what is written: blobs, trees in git's order, commits", async () => {
  using made = makeRepository();
  const { repository, git } = made;
  const blob = gitObject("blob", Buffer.from([0, 255, 10]));
  const inner = treeObject([{ name: "x", mode: "100755", id: blob.id }]);
  // Git sorts a directory as if its name ended in a slash: a-b, a.b, a/, a0.
  const names = ["a0", "a.b", "a-b", 'é\n"'.normalize()];
  const tree = treeObject([
    ...names.map((name) => ({
      name: Buffer.from(name).toString("latin1"),
      mode: "100644" as const,
      id: blob.id,
    })),
    { name: "a", mode: "40000", id: inner.id },
    { name: "l", mode: "120000", id: blob.id },
  ]);
  const commit = commitObject({
    tree: tree.id,
    parent: undefined,
    at: AT,
    message: "one\n\nExecution ID: e",
  });
  await repository.objects.write([blob, inner, tree, commit]);
  expect(repository.advance(undefined, commit.id, "e")).toBe(true);
  expect(git("fsck", "--strict")).toBe("");
  expect(git("cat-file", "blob", blob.id)).toBe("\0\xff\n");
  expect(git("ls-tree", "--name-only", "-z", "main").split("\0")).toEqual([
    "a-b",
    "a.b",
    "a",
    "a0",
    "l",
    Buffer.from('é\n"').toString("latin1"),
    "",
  ]);
  expect(git("log", "--format=%an|%ae|%cI|%s|%b", "main").trim()).toBe(
    "Sandbox User|sandbox@example.com|2024-01-02T03:04:05+00:00|one|Execution ID: e",
  );
  expect(git("symbolic-ref", "HEAD").trim()).toBe("refs/heads/main");
});

test("the ids are those that git computes", () => {
  using made = makeRepository();
  for (const content of ["", "x", "\0".repeat(100_000)]) {
    const file = join(made.place, "content");
    writeFileSync(file, content);
    const id = made.git("hash-object", "--no-filters", file).trim();
    expect(gitObject("blob", Buffer.from(content)).id).toBe(id);
  }
});

test("many objects become one pack that git accepts", async () => {
  using made = makeRepository();
  const { repository, git } = made;
  const sizes = [0, 1, 15, 16, 2_047, 2_048, 300_000];
  const blobs = Array.from({ length: 300 }, (_, i) =>
    gitObject("blob", Buffer.alloc(sizes[i % sizes.length] ?? 0, `${i}.`)),
  );
  const tree = treeObject(blobs.map(({ id }, i) => ({ name: `f${i}`, mode: "100644", id })));
  const commit = commitObject({ tree: tree.id, parent: undefined, at: AT, message: "many" });
  await repository.objects.write([...blobs, tree, commit]);
  repository.advance(undefined, commit.id, "e");
  expect(git("fsck", "--strict")).toBe("");
  expect(git("count-objects", "-v")).toMatch(/^count: 0\n.*packs: 1\n/s);
  expect(git("cat-file", "blob", "main:f6")).toBe(blobs[6]?.content.toString("latin1"));
});

test("others have their turns while large objects are hashed and written", async () => {
  using made = makeRepository();
  const contents = [...Array(3)].map((_, at) => Buffer.alloc(8 * 1024 * 1024, `${at}`));
  contents.push(...[...Array(100)].map((_, at) => Buffer.alloc(60_000, `small ${at}`)));
  let isDone = false;
  const writing = (async () => {
    const blobs = await Promise.all(contents.map(blobObject));
    await made.repository.objects.write(blobs);
    return blobs;
  })().finally(() => {
    isDone = true;
  });
  let turns = 0;
  for (; !isDone; turns++) await nextTurn();
  const blobs = await writing;
  expect(turns).toBeGreaterThan(20);
  expect(blobs.map(({ id }) => id)).toEqual(contents.map((content) => gitObject("blob", content).id));
  expect(made.git("fsck", "--strict", "--no-dangling")).toBe("");
  expect(made.git("count-objects", "-v")).toMatch(/^count: 103\n/);
});

test("a repository that is half made is made anew, a whole one is left alone", () => {
  using made = makeRepository();
  const { repository, git } = made;
  const standIn = repository.standInStart;
  rmSync(join(repository.directory, "HEAD"));
  expect(repository.exists).toBe(false);
  repository.init();
  expect(git("rev-parse", "--is-bare-repository").trim()).toBe("true");
  const again = new GitRepository(repository.directory);
  const now = again.standInStart;
  expect(now).not.toBe(standIn);
  again.init();
  expect(new GitRepository(repository.directory).standInStart).toBe(now);
  expect(again.isStandIn(Buffer.from(`${now}12 bytes\n`))).toBe(true);
  expect(again.isStandIn(Buffer.from(`${standIn}12 bytes\n`))).toBe(false);
});

test("of two that add to the same commit the first one wins, and both know", () => {
  using made = makeRepository();
  const one = made.repository;
  const two = new GitRepository(one.directory);
  const [a, b, c] = ["a", "b", "c"].map((digit) => digit.repeat(40)) as [string, string, string];
  expect(one.advance(undefined, a, "exec_a")).toBe(true);
  expect(two.advance(undefined, b, "exec_b")).toBe(false);
  expect([one.head(), two.head()]).toEqual([a, a]);
  expect(two.advance(a, b, "exec_b")).toBe(true);
  expect(one.advance(a, c, "exec_c")).toBe(false);
  expect(one.tied("exec_c")).toBeUndefined();
  expect(one.advance(b, c, "exec_c")).toBe(true);
  two.tie("exec_idle", b);
  expect([one.tied("exec_a"), one.tied("exec_b"), one.tied("exec_idle"), two.head()]).toEqual([a, b, b, c]);
  expect(readFileSync(join(one.directory, "refs/heads/main"), "utf8")).toBe(`${c}\n`);
  two.close();
});

test("a line of the log that was cut off or is none counts for nothing", () => {
  using made = makeRepository();
  const { repository } = made;
  const log = join(repository.directory, "commits.log");
  const [a, b] = ["a".repeat(40), "b".repeat(40)];
  for (const cut of [
    `\nc none ${b} exec_1`,
    `\nc none ${b.slice(1)} e .\n`,
    "\n\0\0\0",
    `\nt ${b} ../x .\n`,
  ]) {
    writeFileSync(log, cut, { flag: "a" });
  }
  expect(repository.head()).toBeUndefined();
  expect(repository.advance(undefined, a, "exec_2")).toBe(true);
  expect(new GitRepository(repository.directory).head()).toBe(a);
  expect(repository.tied("exec_1")).toBeUndefined();
  expect(repository.tied("../x")).toBeUndefined();
});

test("git's own failures are told with the code that was asked for, and answers are bounded", async () => {
  using made = makeRepository();
  const { repository } = made;
  await expect(repository.git(["log", "nothing"], { code: "GIT_DIFF_FAILED" })).rejects.toMatchObject({
    code: "GIT_DIFF_FAILED",
    message: expect.stringContaining("git log failed"),
  });
  const large = repository.git(["--version"], { code: "GIT_DIFF_FAILED", maxBytes: 3 });
  await expect(large).rejects.toMatchObject({
    code: "PAYLOAD_TOO_LARGE",
    message: "The answer is larger than 3 bytes",
  });
  const aborted = repository.git(["cat-file", "--batch"], {
    code: "GIT_DIFF_FAILED",
    signal: AbortSignal.abort(new Error("enough")),
  });
  await expect(aborted).rejects.toThrow("enough");
});
