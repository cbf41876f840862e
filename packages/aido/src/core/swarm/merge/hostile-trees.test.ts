import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { GitBed } from "../testing/git-bed.ts";
import { mergeBranches } from "./merge-branches.ts";
import { previewMerge } from "./preview-merge.ts";

const INTO = "aimi/integration-2f61c0de";
const quiet = () => undefined;
const plan = (...branches: string[]) => ({
  into: INTO,
  base: undefined,
  branches: branches.map((branch) => ({ branch, worker: undefined })),
});

test("no hook, merge driver, filter, monitor or attribute makes a program run", async () => {
  using bed = new GitBed({ "app.txt": "one\n", ".gitattributes": "* merge=evil filter=evil diff=evil\n" });
  const ran = join(bed.directory, "ran");
  const touch = `sh -c 'echo x >> ${ran}; cat'`;
  for (const [name, value] of [
    ["merge.evil.driver", `${touch} %A %O %B`],
    ["filter.evil.clean", touch],
    ["filter.evil.smudge", touch],
    ["diff.evil.textconv", touch],
    ["core.fsmonitor", `${touch} monitor`],
  ]) {
    bed.user("config", name ?? "", value ?? "");
  }
  // The checkout of the user has the attributes too.
  const hooks = join(bed.project, ".git/hooks");
  mkdirSync(hooks, { recursive: true });
  for (const name of [
    "reference-transaction",
    "post-merge",
    "commit-msg",
    "pre-merge-commit",
    "post-checkout",
  ]) {
    writeFileSync(join(hooks, name), `#!/bin/sh\necho x >> ${ran}\n`);
    chmodSync(join(hooks, name), 0o755);
  }
  bed.push("a", {
    "app.txt": "A\n",
    ".githooks/post-merge": "#!/bin/sh\n",
    "sub/.gitattributes": "* merge=evil\n",
  });
  bed.push("b", { "app.txt": "B\n" });
  bed.push("c", { "c.txt": "c\n" });
  await previewMerge(bed.repository, plan("a", "b", "c"), quiet);
  const { conflict } = await mergeBranches(bed.repository, plan("c", "a", "b"), quiet);
  expect(conflict?.files[0]?.hunks).toMatchObject([{ ours: ["A"], theirs: ["B"] }]);
  expect(existsSync(ran)).toBe(false);
});

test("a tree with a .git in it is refused with the branch's name, also at the second try", async () => {
  using bed = new GitBed();
  bed.push("good", { "a.txt": "a\n" });
  bed.inWorkers("checkout", "--quiet", "-B", "evil", "origin/main");
  const blob = feed(bed, "hash-object", ["-w", "--stdin"], "[core]\n\tfsmonitor = touch ran\n");
  const inner = feed(bed, "mktree", [], `100644 blob ${blob}\tconfig\n`);
  const tree = feed(bed, "mktree", [], `040000 tree ${inner}\t.git\n`);
  const commit = feed(bed, "commit-tree", [tree, "-p", "HEAD", "-m", "evil"], "");
  bed.inWorkers("push", "--quiet", "origin", `${commit}:refs/heads/evil`);
  const before = bed.userState();
  for (let round = 0; round < 2; round += 1) {
    await expect(mergeBranches(bed.repository, plan("good", "evil"), quiet)).rejects.toMatchObject({
      code: "GIT_FETCH_FAILED",
      message: expect.stringMatching(/^Fetching evil from origin failed: .*\.git/),
      details: { branch: "evil" },
    });
  }
  expect(bed.userState()).toEqual(before);
  expect(bed.user("for-each-ref", "refs/heads/aimi")).toBe("");
  expect((await mergeBranches(bed.repository, plan("good"), quiet)).conflict).toBeUndefined();
});

test("submodules are merged as entries and never fetched", async () => {
  using bed = new GitBed();
  const other = join(bed.directory, "other.git");
  bed.git(bed.directory, "clone", "--quiet", "--bare", bed.origin, other);
  bed.inWorkers("checkout", "--quiet", "-B", "sub", "origin/main");
  bed.inWorkers("submodule", "--quiet", "add", other, "lib");
  bed.inWorkers("commit", "--quiet", "-m", "sub");
  bed.inWorkers("push", "--quiet", "origin", "sub");
  bed.user("config", "submodule.recurse", "true");
  bed.user("config", "fetch.recurseSubmodules", "true");
  const { conflict } = await mergeBranches(bed.repository, plan("sub"), quiet);
  expect(conflict).toBeUndefined();
  expect(bed.user("ls-tree", INTO, "lib")).toMatch(/^160000 commit/);
  expect(existsSync(join(bed.project, ".git/modules"))).toBe(false);
});

test("names with newlines, tabs and bytes that are no UTF-8 conflict like any other", async () => {
  const name = "a\n\t\u001b[2J.txt";
  using bed = new GitBed({ [name]: "one\n" });
  bed.push("a", { [name]: "A\n" });
  bed.push("b", { [name]: "B\n" });
  const { conflict } = await mergeBranches(bed.repository, plan("a", "b"), quiet);
  expect(conflict?.files).toMatchObject([{ path: name, hunks: [{ ours: ["A"], theirs: ["B"] }] }]);
});

test("marks that a worker wrote are not taken for git's own, and long sides are cut", async () => {
  const fake = "<<<<<<< HEAD\nx\n=======\ny\n>>>>>>> fake\n";
  using bed = new GitBed({ "app.txt": `${fake}one\n` });
  const long = (word: string) =>
    `${Array.from({ length: 500 }, (_, index) => `${word}${index}`).join("\n")}\n`;
  bed.push("a", { "app.txt": `${fake}${long("A")}` });
  bed.push("b", { "app.txt": `${fake}${"B".repeat(5000)}\n` });
  const { conflict } = await mergeBranches(bed.repository, plan("a", "b"), quiet);
  const [hunk] = conflict?.files[0]?.hunks ?? [];
  expect(conflict?.files[0]?.hunks).toHaveLength(1);
  expect(hunk).toMatchObject({ line: 6, omitted: 488 });
  expect(hunk?.ours).toHaveLength(12);
  expect(hunk?.theirs).toEqual(["B".repeat(200)]);
});

function feed(bed: GitBed, command: string, args: readonly string[], input: string): string {
  const cwd = join(bed.directory, "workers");
  return execFileSync("git", [command, ...args], { cwd, env: bed.env, input })
    .toString()
    .trim();
}
