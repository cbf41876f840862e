import { expect, test } from "vitest";
import { GitBed } from "../../src/core/swarm/testing/git-bed.ts";
import { AidoProcess } from "./aido-process.ts";

const INTO = "integration";
const BRANCHES = ["a", "b", "c", "d", "e"];

test("a merge that is killed at any point leaves whole refs; run again, the result is the same", async () => {
  using bed = new GitBed();
  for (const name of BRANCHES) bed.push(`feat/${name}`, { [`${name}.txt`]: name });
  const before = bed.userState();
  const start = (...argv: string[]) =>
    new AidoProcess(["swarm", "merge", ...argv, "--into", INTO], { cwd: bed.project, env: bed.env });
  const branches = BRANCHES.map((name) => `feat/${name}`);
  const done = () => {
    const merges = bed.user("for-each-ref", "--format=%(objectname)", `refs/heads/${INTO}`).trim();
    return merges === "" ? -1 : Number(bed.user("rev-list", "--count", "--merges", merges));
  };
  // At its very beginning, after the branch was made, and after each merge but the last.
  for (const reached of [-1, 0, 1, 2, 3, 4]) {
    await using merging = start(...branches);
    merging.child.stdin.end();
    await expect.poll(done, { timeout: 30_000, interval: 5 }).toBeGreaterThanOrEqual(reached);
    merging.child.kill("SIGKILL");
    await merging.end();
    const tip = done();
    bed.user("fsck", "--strict", "--connectivity-only");
    if (tip > 0) {
      const subjects = bed.user("log", "--first-parent", "--merges", "--reverse", "--format=%s", INTO);
      expect(subjects.trim().split("\n")).toEqual(
        branches.slice(0, tip).map((branch) => `Merge branch '${branch}'`),
      );
    }
  }
  await using last = start(...branches);
  last.child.stdin.end();
  expect(await last.end()).toMatchObject({ code: 0, stdout: expect.stringContaining(`${INTO} is at `) });
  expect(done()).toBe(BRANCHES.length);
  expect(bed.user("ls-tree", "-r", "--name-only", INTO).split("\n")).toEqual(
    expect.arrayContaining(BRANCHES.map((name) => `${name}.txt`)),
  );
  // It is not among what counts as the user's.
  expect(bed.userState()).toEqual(before);
  expect(bed.user("for-each-ref", "refs/aido")).toBe("");
});
