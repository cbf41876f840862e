import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openAido } from "../compose.ts";
import { loadProcessConfig } from "../config/process-config.ts";
import { makeLogger } from "../log/make-logger.ts";

let directory = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "aido-carried-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const at = (...names: string[]) => join(directory, ...names);
const git = (where: string, ...args: string[]) =>
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.com", ...args], { cwd: at(where) });

async function open(project: string): Promise<void> {
  const { config } = loadProcessConfig({ flags: { dataDir: at(project, ".aido"), driver: "local" } });
  await (await openAido({ config, logger: makeLogger(config) })).close();
}

/** A repository that has somebody's data directory in it, and a clone of it. */
async function cloned(): Promise<string> {
  execFileSync("git", ["init", "-q", "evil"], { cwd: directory });
  await open("evil");
  symlinkSync("/etc", at("evil/.aido/sandboxes/abcdefgh"));
  git("evil", "add", "--force", "--all");
  git("evil", "commit", "-q", "-m", "Bring records along");
  execFileSync("git", ["clone", "-q", "evil", "clone"], { cwd: directory });
  return "clone";
}

test("a data directory that came with a repository is not used, and nothing of it is changed", async () => {
  const clone = await cloned();
  await expect(open(clone)).rejects.toMatchObject({
    code: "FORBIDDEN",
    hint: expect.stringContaining("--data-dir"),
  });
  rmSync(at(clone, ".aido/scope"));
  await expect(open(clone)).rejects.toMatchObject({ code: "FORBIDDEN" });
  expect(existsSync(at(clone, ".aido/scope"))).toBe(false);
});

test("one's own data directory is used, also when it was committed or copied", async () => {
  await cloned();
  await open("evil");
  cpSync(at("evil/.aido"), at("copy/.aido"), { recursive: true, verbatimSymlinks: true });
  await open("copy");
});
