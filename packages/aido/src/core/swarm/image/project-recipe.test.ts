import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { ContextEntry } from "../../driver/driver-images.ts";
import { GitBed } from "../testing/git-bed.ts";
import { openProject } from "./open-project.ts";
import { type ProjectRecipe, projectRecipe } from "./project-recipe.ts";
import { leadsOut, readProjectTree } from "./project-tree.ts";

const TEMPLATES = new URL("../../../../../../images/swarm-base", import.meta.url).pathname;

function makeBed(files?: Record<string, string>): GitBed {
  const bed = new GitBed(files);
  onTestFinished(() => bed[Symbol.dispose]());
  return bed;
}

async function recipeOf(bed: GitBed, directory = bed.project): Promise<ProjectRecipe> {
  return await projectRecipe(await openProject(directory, { env: bed.env }), TEMPLATES);
}

async function filesOf(recipe: ProjectRecipe): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for await (const entry of recipe.files()) found[entry.path] = shown(entry);
  return found;
}

function shown(entry: ContextEntry): string {
  if ("target" in entry) return `-> ${entry.target}`;
  return "content" in entry ? Buffer.from(entry.content).toString("latin1") : "streamed";
}

function commit(bed: GitBed, change: () => void): void {
  change();
  bed.user("add", "--all");
  bed.user("commit", "--quiet", "--message", "more");
}

/** A commit of a tree that git itself would not write. */
function commitTree(
  bed: GitBed,
  entries: readonly [mode: string, name: string | Buffer, content: string][],
): void {
  const blob = (content: string) =>
    execFileSync("git", ["hash-object", "-w", "--stdin"], { cwd: bed.project, env: bed.env, input: content })
      .toString()
      .trim();
  const tree = Buffer.concat(
    entries.map(([mode, name, content]) =>
      Buffer.concat([
        Buffer.from(`${mode} `),
        Buffer.from(name),
        Buffer.of(0),
        Buffer.from(mode === "40000" || mode === "160000" ? content : blob(content), "hex"),
      ]),
    ),
  );
  const id = execFileSync("git", ["hash-object", "-w", "-t", "tree", "--literally", "--stdin"], {
    cwd: bed.project,
    env: bed.env,
    input: tree,
  });
  const made = bed.user("commit-tree", id.toString().trim(), "-m", "hostile").trim();
  bed.user("update-ref", "HEAD", made);
}

test("S1-11 S1-13 S1-15 S1-20 an image has the committed files, and the settings as they are on disk", async () => {
  const bed = makeBed({ "app.js": "1\n", "deep/er/run.sh": "#!/bin/sh\n", "yarn.lock": "" });
  commit(bed, () => {
    chmodSync(join(bed.project, "deep/er/run.sh"), 0o755);
    symlinkSync("deep/er/run.sh", join(bed.project, "run"));
  });
  writeFileSync(join(bed.project, "app.js"), "not committed\n");
  writeFileSync(join(bed.project, "untracked"), "x");
  mkdirSync(join(bed.project, ".aimi/tasks"), { recursive: true });
  writeFileSync(join(bed.project, ".aimi/tasks/a-tasks.json"), "{}");
  const recipe = await recipeOf(bed);
  expect(recipe).toMatchObject({
    slug: "origin",
    tag: "aimi-sandbox-origin:latest",
    madeFrom: ["yarn.lock"],
    leftOut: [],
    commit: bed.user("rev-parse", "HEAD").trim(),
  });
  expect(await filesOf(recipe)).toEqual({
    "source/app.js": "1\n",
    "source/deep/er/run.sh": "#!/bin/sh\n",
    "source/run": "-> deep/er/run.sh",
    "source/yarn.lock": "",
    "settings/.aimi/tasks/a-tasks.json": "{}",
  });
});

test("S1-16 S1-21 the checksum follows what the image is made of, and not what a swarm writes while it runs", async () => {
  const bed = makeBed();
  const aimi = (name: string, content: string) => {
    mkdirSync(join(bed.project, ".aimi/swarm/records"), { recursive: true });
    writeFileSync(join(bed.project, ".aimi", name), content);
  };
  aimi("note.md", "1");
  const sums: string[] = [];
  const sum = async (ids = ["sha256:a"]) => (await recipeOf(bed)).checksum(ids);
  sums.push(await sum(), await sum(["sha256:b"]));
  aimi("note.md", "2");
  sums.push(await sum());
  commit(bed, () => chmodSync(join(bed.project, "app.txt"), 0o755));
  sums.push(await sum());
  aimi("Dockerfile.sandbox", "FROM aimi-sandbox:base\n");
  sums.push(await sum());
  expect(new Set(sums).size).toBe(sums.length);
  aimi("swarm-state.json", "{}");
  aimi(".state.lock", "");
  for (const name of ["current-tasks", "current-branch", "current-story", "last-result"]) aimi(name, "x");
  aimi("swarm/records/x.json", "{}");
  writeFileSync(join(bed.project, "app.txt"), "not committed");
  expect(await sum()).toBe(sums.at(-1));
});

test("S1-21 a project's own Dockerfile sees the project as it is, and is not hidden by others", async () => {
  const bed = makeBed({ Dockerfile: "FROM evil\n", ".dockerignore": "**\n", "a b\nc": "odd" });
  mkdirSync(join(bed.project, ".aimi"));
  writeFileSync(join(bed.project, ".aimi/Dockerfile.sandbox"), "FROM aimi-sandbox:base\nCOPY . /workspace\n");
  const recipe = await recipeOf(bed);
  expect(recipe).toMatchObject({
    dockerfilePath: ".aimi/Dockerfile.sandbox",
    madeFrom: [".aimi/Dockerfile.sandbox"],
    bases: ["aimi-sandbox:base"],
  });
  expect(await filesOf(recipe)).toEqual({
    Dockerfile: "FROM evil\n",
    ".dockerignore": "**\n",
    "a b\nc": "odd",
  });
});

test("S1-13 links that lead out are left out and told", async () => {
  const bed = makeBed();
  commit(bed, () => {
    mkdirSync(join(bed.project, "d"));
    symlinkSync("/etc/passwd", join(bed.project, "absolute"));
    symlinkSync("../../outside", join(bed.project, "d/up"));
    symlinkSync("..", join(bed.project, "d/parent"));
    symlinkSync("../app.txt", join(bed.project, "d/inside"));
  });
  const recipe = await recipeOf(bed);
  expect([...recipe.leftOut].sort()).toEqual(["absolute", "d/up"]);
  const files = await filesOf(recipe);
  expect(files["source/d/inside"]).toBe("-> ../app.txt");
  expect(files["source/d/parent"]).toBe("-> ..");
});

test.each([
  ["a", "b", false],
  ["d/a", "../b", false],
  ["d/a", "..", false],
  ["a", "..", true],
  ["a", "d/../../b", true],
  ["a", "/x", true],
  ["a", "", true],
])("a link %s to %j leads out: %s", (path, target, out) => {
  expect(leadsOut(path, target)).toBe(out);
});

test("S1-13 a tree made by hand gives no path out, no repository and nothing beneath a link", async () => {
  const bed = makeBed();
  const below = bed.user("rev-parse", "HEAD^{tree}").trim();
  commitTree(bed, [
    ["100644", "fine", "1"],
    ["100644", "..", "x"],
    ["100644", ".GIT", "x"],
    ["40000", ".git", below],
    ["120000", "both", "fine"],
    ["40000", "both", below],
    ["160000", "module", below],
    ["100644", Buffer.of(0xff, 0xfe), "x"],
  ]);
  const recipe = await recipeOf(bed);
  expect(await filesOf(recipe)).toEqual({ "source/both": "-> fine", "source/fine": "1" });
  expect([...recipe.leftOut].sort()).toEqual(
    ["..", ".GIT", ".git/README.md", ".git/app.txt", "both/README.md", "both/app.txt", "module", "ÿþ"].sort(),
  );
});

test("S1-13 no filter, hook or attribute of a project runs or changes a file", async () => {
  const bed = makeBed({
    "app.txt": "as committed $Id$\n",
    ".gitattributes": "* filter=evil ident text eol=crlf\n",
  });
  const mark = join(bed.directory, "ran");
  bed.user("config", "filter.evil.smudge", `touch ${mark}; cat`);
  bed.user("config", "filter.evil.process", `touch ${mark}`);
  bed.user("config", "core.fsmonitor", `touch ${mark}`);
  mkdirSync(join(bed.project, ".git/hooks"), { recursive: true });
  for (const hook of ["post-checkout", "post-index-change", "reference-transaction"]) {
    writeFileSync(join(bed.project, ".git/hooks", hook), `#!/bin/sh\ntouch ${mark}\n`, { mode: 0o755 });
  }
  expect((await filesOf(await recipeOf(bed)))["source/app.txt"]).toBe("as committed $Id$\n");
  expect(() => execFileSync("test", ["-e", mark])).toThrow();
});

test("S1-15 settings are read through no link", async () => {
  const bed = makeBed();
  const aimi = join(bed.project, ".aimi");
  mkdirSync(join(aimi, "tasks"), { recursive: true });
  writeFileSync(join(bed.directory, "secret"), "key");
  mkdirSync(join(bed.directory, "secrets"));
  symlinkSync(join(bed.directory, "secret"), join(aimi, "tasks/x-tasks.json"));
  symlinkSync(join(bed.directory, "secret"), join(aimi, "Dockerfile.sandbox"));
  symlinkSync(join(bed.directory, "secrets"), join(aimi, "more"));
  execFileSync("mkfifo", [join(aimi, "pipe")]);
  const recipe = await recipeOf(bed);
  expect([...recipe.leftOut].sort()).toEqual([
    ".aimi/Dockerfile.sandbox",
    ".aimi/more",
    ".aimi/pipe",
    ".aimi/tasks/x-tasks.json",
  ]);
  expect(JSON.stringify(await filesOf(recipe))).not.toContain("key");
});

test("S1-20 a linked work tree gives what is checked out in it", async () => {
  const bed = makeBed();
  const other = join(bed.directory, "other");
  bed.user("worktree", "add", "--quiet", "-b", "side", other);
  writeFileSync(join(other, "side.txt"), "side\n");
  bed.git(other, "add", "--all");
  bed.git(other, "commit", "--quiet", "-m", "side");
  expect(await filesOf(await recipeOf(bed, other))).toMatchObject({ "source/side.txt": "side\n" });
});

test("a directory without a repository, and a repository without a commit, are told apart", async () => {
  const bed = makeBed();
  await expect(openProject(bed.directory, { env: bed.env })).rejects.toMatchObject({
    code: "VALIDATION_ERROR",
    message: expect.stringContaining("not in a git repository"),
  });
  bed.git(bed.directory, "init", "--quiet", "empty");
  await expect(openProject(join(bed.directory, "empty"), { env: bed.env })).rejects.toMatchObject({
    code: "VALIDATION_ERROR",
    message: expect.stringContaining("no commit yet"),
  });
});

test("S1-13 a file above the limit is left out, and a project above its limits is refused with its size", async () => {
  const bed = makeBed({ small: "1", large: "12345", other: "123" });
  const limits = { files: 3, fileBytes: 4, bytes: 4 };
  const tree = await readProjectTree(bed.repository, "HEAD", limits);
  expect(tree.files.map(({ path }) => path)).toEqual(["other", "small"]);
  expect(tree.leftOut).toEqual(["large"]);
  for (const tight of [
    { ...limits, bytes: 3 },
    { ...limits, files: 1 },
  ]) {
    await expect(readProjectTree(bed.repository, "HEAD", tight)).rejects.toMatchObject({
      code: "PAYLOAD_TOO_LARGE",
      details: { files: 2, bytes: 4 },
    });
  }
});

test("every file of a large project comes in order, whatever the batches are", async () => {
  const files = Object.fromEntries(Array.from({ length: 1100 }, (_, n) => [`d${n % 7}/f${n}`, `${n}\n`]));
  const bed = makeBed(files);
  const found = await filesOf(await recipeOf(bed));
  expect(Object.keys(found)).toHaveLength(1100);
  for (const [path, content] of Object.entries(files)) expect(found[`source/${path}`]).toBe(content);
});
