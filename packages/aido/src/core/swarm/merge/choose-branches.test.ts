import { expect, test } from "vitest";
import type { SwarmContainer, WorkerStatus } from "../state/swarm-state.ts";
import { chooseBranches } from "./choose-branches.ts";
import { parsePlan } from "./merge-plan.ts";
import { checkVersion } from "./open-repository.ts";
import { isRefName } from "./ref-name.ts";

const worker = (name: string, status: WorkerStatus): SwarmContainer => ({
  containerId: "4f0c2b9a81de",
  containerName: `aimi-swarm-${name}`,
  taskFilePath: `.aimi/tasks/${name}-tasks.json`,
  branchName: `feat/${name}`,
  status,
  storyProgress: { total: 0, completed: 0, failed: 0, inProgress: 0, pending: 0 },
  createdAt: "2026-01-01T00:00:00Z",
  updatedAt: "2026-01-01T00:00:00Z",
});

const workers = [
  worker("cart", "completed"),
  worker("login", "completed"),
  worker("docs", "failed"),
  worker("search", "running"),
  worker("about", "completed"),
];
const choose = (named: string[], first: string[] = []) =>
  chooseBranches({ workers, named, first }).map(({ branch }) => branch);

test("those that completed, as the swarm has them; --order puts some first", () => {
  expect(choose([])).toEqual(["feat/cart", "feat/login", "feat/about"]);
  expect(choose([], ["about", "feat/login"])).toEqual(["feat/about", "feat/login", "feat/cart"]);
  expect(() => choose([], ["docs"])).toThrow("--order names docs");
});

test("named ones come as named: by worker, by its short name, by branch; each once", () => {
  expect(choose(["login", "aimi-swarm-cart", "feat/login", "other/branch"])).toEqual([
    "feat/login",
    "feat/cart",
    "other/branch",
  ]);
  expect(choose(["docs"])).toEqual(["feat/docs"]);
});

test("a worker that still works is refused, and so is what cannot be a branch", () => {
  expect(() => choose(["search"])).toThrow("aimi-swarm-search is running");
  for (const name of [
    "--upload-pack=x",
    "a b",
    "a..b",
    "a;b",
    "",
    "a/.b",
    "x.lock",
    "a\u001b",
    "@",
    "a//b",
    "a:b",
  ]) {
    expect(isRefName(name)).toBe(false);
    expect(() => choose([name])).toThrow("is not a name of a branch");
  }
  for (const name of ["main", "release/1.2", "feat/a_b-c", "user@host"]) expect(isRefName(name)).toBe(true);
});

test("a git that cannot merge without a work tree is named", () => {
  for (const said of ["git version 2.38.0", "git version 2.39.5", "git version 3.0.1 (Apple Git-1)"])
    expect(() => checkVersion(said)).not.toThrow();
  for (const said of ["git version 2.37.7", "git version 1.9.1", "nonsense"])
    expect(() => checkVersion(said)).toThrow("Merging needs git 2.38 or later");
});

test("a damaged plan is none", () => {
  expect(parsePlan('{"into":"a","branches":[{"branch":"b","worker":"w"},{"branch":"c"}]}')).toEqual({
    into: "a",
    branches: [
      { branch: "b", worker: "w" },
      { branch: "c", worker: undefined },
    ],
  });
  for (const text of [
    "",
    "null",
    "[]",
    '{"into":"-x","branches":[]}',
    '{"into":"a","branches":[null]}',
    '{"into":"a"}',
  ])
    expect(parsePlan(text)).toBeUndefined();
});
