import { expect, test } from "vitest";
import type { SwarmContainer } from "../state/swarm-state.ts";
import { parseTaskFile } from "../tasks/parse-task-file.ts";
import { taskFileText } from "../testing/task-file-text.ts";
import { type BranchUse, checkBranches } from "./check-branches.ts";

const file = (name: string, branchName: string) =>
  parseTaskFile(`.aimi/tasks/${name}-tasks.json`, taskFileText(undefined, { metadata: { branchName } }));
const FREE: BranchUse = {
  entries: [],
  checkedOut: new Map([["main", "/home/me/shop"]]),
  defaultBranch: "trunk",
};
const entry = (status: SwarmContainer["status"], branchName: string) =>
  ({
    containerName: "aimi-swarm-old",
    taskFilePath: ".aimi/tasks/old-tasks.json",
    branchName,
    status,
  }) as SwarmContainer;

test("a branch for each task file is fine", () => {
  checkBranches([file("a", "feat/a"), file("b", "feat/b")], FREE);
});

test.each<[string, Parameters<typeof checkBranches>, string, string]>([
  [
    "of another task file",
    [[file("a", "feat/x"), file("b", "feat/x")], FREE],
    "BRANCH_IN_USE",
    "feat/x is also the branch of",
  ],
  [
    "below another's",
    [[file("a", "feat"), file("b", "feat/x")], FREE],
    "BRANCH_IN_USE",
    "feat/x cannot be beside feat",
  ],
  [
    "of a worker",
    [[file("a", "feat/x")], { ...FREE, entries: [entry("running", "feat/x")] }],
    "BRANCH_IN_USE",
    "aimi-swarm-old",
  ],
  ["that is checked out", [[file("a", "main")], FREE], "BRANCH_IN_USE", "checked out in /home/me/shop"],
  ["that is the default", [[file("a", "trunk")], FREE], "BRANCH_IN_USE", "default branch of origin"],
  [
    "with one name",
    [[file("2026-01-05-a", "feat/x"), file("2026-01-06-a", "feat/y")], FREE],
    "CONTAINER_NAME_TAKEN",
    "aimi-swarm-a",
  ],
])("a branch %s is refused, with file and field", (_, given, code, message) => {
  expect(() => checkBranches(...given)).toThrow(
    expect.objectContaining({ code, message: expect.stringContaining(message) }),
  );
});

test("a worker that has ended, and the file's own worker, hold no branch", () => {
  checkBranches([file("a", "feat/x")], { ...FREE, entries: [entry("completed", "feat/x")] });
  checkBranches([file("old", "feat/x")], { ...FREE, entries: [entry("running", "feat/x")] });
});
