import { writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { GitBed } from "../testing/git-bed.ts";
import { checkProject } from "./check-project.ts";

let bed: GitBed;
beforeEach(() => {
  bed = new GitBed();
  bed.user("remote", "set-url", "origin", "https://example.com/shop.git");
});
afterEach(() => bed[Symbol.dispose]());

const check = (project = bed.project) => checkProject(project, { env: bed.env });

test("a clean checkout of a pushed branch is ready, whatever aido keeps in it", async () => {
  for (const path of [".aimi/tasks", ".aido"]) await mkdir(join(bed.project, path), { recursive: true });
  writeFileSync(join(bed.project, ".aimi/tasks/a-tasks.json"), "{}");
  writeFileSync(join(bed.project, ".aido/aido.db"), "");
  expect(await check()).toEqual({
    repoUrl: "https://example.com/shop.git",
    branch: "main",
    defaultBranch: "main",
    checkedOut: new Map([["main", bed.project]]),
    warnings: [],
  });
});

test("what workers will not see is warned of: changes and commits that are not pushed", async () => {
  for (const name of ["README.md", "two words\n.txt"]) writeFileSync(join(bed.project, name), "x");
  const warning = (path: string) => expect.stringContaining(`not committed, the first in ${path};`);
  expect((await check()).warnings).toEqual([warning("README.md")]);
  bed.user("checkout", "--quiet", "README.md");
  expect((await check()).warnings).toEqual([warning("two words\n.txt")]);
  bed.user("add", "--all");
  bed.user("commit", "--quiet", "-m", "more");
  expect((await check()).warnings).toEqual([
    expect.stringContaining("main has 1 commit that origin has not"),
  ]);
});

test.each([
  ["/srv/shop.git", "/srv/shop.git"],
  ["file:///srv/shop.git", "file:"],
  ["ext::sh -c id", "ext::"],
  ["git@-oProxyCommand=id:x", "-oProxy"],
  ["http://example.com/shop.git", "http:"],
])("S1-65 an origin that workers cannot use is refused: %s", async (url, shown) => {
  bed.user("config", "remote.origin.url", url);
  await expect(check()).rejects.toMatchObject({
    code: "VALIDATION_ERROR",
    message: expect.stringContaining(shown),
    hint: expect.stringContaining("git remote set-url origin"),
  });
});

test.each(["git@example.com:team/shop.git", "ssh://git@example.com/shop.git"])("%s is fine", async (url) => {
  bed.user("remote", "set-url", "origin", url);
  expect((await check()).repoUrl).toBe(url);
});

test("a password in origin's address stays here", async () => {
  bed.user("remote", "set-url", "origin", "https://me:hunter2@example.com/shop.git");
  const { repoUrl, warnings } = await check();
  expect(repoUrl).toBe("https://example.com/shop.git");
  expect(warnings).toEqual([expect.stringContaining("password")]);
  expect(warnings.join()).not.toContain("hunter2");
});

test.each<[string, () => string | undefined, string]>([
  ["no repository", () => bed.directory, "is not in a git repository"],
  ["no directory", () => join(bed.directory, "none"), "is not a directory"],
  ["no origin", () => void bed.user("remote", "remove", "origin"), "no remote named origin"],
  ["a detached HEAD", () => void bed.user("checkout", "--quiet", "--detach"), "detached HEAD"],
  ["no commit", () => void bed.user("checkout", "--quiet", "--orphan", "new"), "no commit yet"],
  ["a directory below the top", () => join(bed.project, "sub"), "is not the top of its repository"],
])("S1-65 %s is refused with what to do", async (_, spoil, message) => {
  const project = spoil() ?? bed.project;
  if (project.endsWith("sub")) await mkdir(project);
  await expect(check(project)).rejects.toMatchObject({
    code: "VALIDATION_ERROR",
    message: expect.stringContaining(message),
    hint: expect.stringMatching(/./),
  });
});
