import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { GitRepository } from "../../src/core/history/git-repository.ts";
import { SandboxHistory } from "../../src/core/history/sandbox-history.ts";
import { bundle } from "../processes/bundle.ts";
import { startChild } from "../processes/child.ts";
import { scriptedWorkspace } from "./scripted-workspace.ts";

let built: Awaited<ReturnType<typeof bundle>>;
beforeAll(async () => {
  built = await bundle(new URL("./death-program.ts", import.meta.url));
});
afterAll(() => built[Symbol.dispose]());

describe("a history whose process is killed", () => {
  test("is a valid repository at every step, and the next process goes on with it", async () => {
    const place = mkdtempSync(join(tmpdir(), "aido-history-death-"));
    try {
      await using whole = startChild(built.program, [join(place, "whole")]);
      await whole.until(1);
      const steps = Number(whole.lines[0]);
      expect(steps).toBeGreaterThan(30);
      for (let step = 0; step < steps; step++) {
        const directory = join(place, `step-${step}`);
        await using child = startChild(built.program, [directory, String(step)]);
        await child.ended;
        expect(child.signal).toBe("SIGKILL");
        await goOn(directory);
      }
    } finally {
      rmSync(place, { recursive: true, force: true });
    }
  });
});

async function goOn(directory: string): Promise<void> {
  const fsck = () =>
    execFileSync("git", ["--git-dir", directory, "fsck", "--strict", "--no-dangling"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
  if (existsSync(join(directory, "HEAD"))) fsck();
  const workspace = scriptedWorkspace();
  workspace.write("README.md", "readme");
  workspace.write("d/a", "1");
  workspace.write("b", "2");
  const history = new SandboxHistory(new GitRepository(directory), workspace);
  const before = await history.list(100);
  await history.record({ execId: "next", at: new Date(3_000), message: "Update" });
  const entries = await history.list(100);
  expect(entries.slice(1)).toEqual(before);
  expect(entries[0]?.execId).toBe("next");
  expect(entries.flatMap(({ files }) => files).sort()).toEqual(["README.md", "b", "d/a"]);
  for (const { execId, commitId } of entries) expect(await history.commitOf(execId)).toBe(commitId);
  fsck();
  expect(
    execFileSync("git", ["--git-dir", directory, "rev-parse", "main"], { encoding: "utf8" }).trim(),
  ).toBe(entries[0]?.commitId);
}
