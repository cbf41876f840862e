import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { FakeWorker, FakeWorkers } from "../../core/swarm/testing/fake-workers.ts";
import { GitBed } from "../../core/swarm/testing/git-bed.ts";
import { complete } from "../../core/swarm/testing/swarm-bed.ts";
import type { GlobalOptions } from "../context.ts";
import { runCli } from "../run-cli.ts";
import { fakeContext } from "../testing/fake-context.ts";

const ID = "4f0c2b9a81de";
const SWARM_ID = "2f61c0de-8a53-4d3e-9b4e-0a1b2c3d4e5f";
const TIME = "2026-01-01T00:00:00.000Z";
const INTO = "aimi/integration-2f61c0de";

function putState(bed: GitBed, workers: Readonly<Record<string, string>>): void {
  const containers = Object.entries(workers).map(([name, status]) => ({
    containerId: ID,
    containerName: `aimi-swarm-${name}`,
    taskFilePath: `.aimi/tasks/${name}-tasks.json`,
    branchName: `feat/${name}`,
    status,
    storyProgress: { total: 0, completed: 0, failed: 0, inProgress: 0, pending: 0 },
    createdAt: TIME,
    updatedAt: TIME,
  }));
  const state = {
    swarmId: SWARM_ID,
    createdAt: TIME,
    updatedAt: TIME,
    containers,
  };
  mkdirSync(join(bed.project, ".aimi"), { recursive: true });
  writeFileSync(join(bed.project, ".aimi/swarm-state.json"), JSON.stringify(state));
}

/** An engine in which this worker runs. */
function engineWith(name: string): { workers: FakeWorkers; worker: FakeWorker } {
  const workers = new FakeWorkers();
  const worker = new FakeWorker({ name: `aimi-swarm-${name}`, swarmId: SWARM_ID } as never, ID);
  worker.started = {} as never;
  workers.all.set(`aimi-swarm-${name}`, worker);
  return { workers, worker };
}

const cli = (bed: GitBed, ...argv: string[]) => cliWith(new FakeWorkers(), bed, ...argv);

async function cliWith(workers: FakeWorkers, bed: GitBed, ...argv: string[]) {
  const settings = [{ key: "swarm.isolation", value: "sysbox", source: "default" as const }];
  const base = fakeContext({ cwd: bed.project, env: bed.env, workers, settings });
  const makeContext = (globals: GlobalOptions) => Promise.resolve({ ...base, globals });
  const code = await runCli(["swarm", "merge", ...argv], { version: "1.2.3", makeContext });
  return { code, stdout: base.stdout.text, stderr: base.stderr.text };
}

test("merges what is completed, says what is left out, and tells all of it as JSON", async () => {
  using bed = new GitBed();
  bed.push("feat/login", { "login.txt": "x\n" });
  bed.push("feat/cart", { "cart.txt": "x\n" });
  putState(bed, { login: "completed", cart: "completed", docs: "running" });
  const { workers } = engineWith("docs");
  const { code, stdout, stderr } = await cliWith(workers, bed, "--order", "cart");
  expect(code).toBe(0);
  expect(stdout.split("\n").map((line) => line.split(/ {2,}/).slice(0, 2))).toEqual([
    ["BRANCH", "WORKER"],
    ["feat/cart", "aimi-swarm-cart"],
    ["feat/login", "aimi-swarm-login"],
    [expect.stringMatching(/^aimi\/integration-2f61c0de is at [0-9a-f]{12}$/)],
    [""],
  ]);
  expect(stderr).toBe("left out: aimi-swarm-docs (running)\n");
  const again = JSON.parse((await cli(bed, "--json")).stdout);
  expect(again).toMatchObject({ into: INTO, conflict: null, remaining: [], next: [] });
  expect(again.merged).toEqual([
    { branch: "feat/login", worker: "aimi-swarm-login" },
    { branch: "feat/cart", worker: "aimi-swarm-cart" },
  ]);
});

test("S1-48 workers that ended while nobody looked are merged or left out as they ended", async () => {
  using bed = new GitBed();
  bed.push("feat/login", { "login.txt": "x\n" });
  putState(bed, { login: "running", cart: "running" });
  const { workers, worker } = engineWith("login");
  const early = await cliWith(workers, bed, "login");
  expect(early).toMatchObject({
    code: 5,
    stderr: expect.stringContaining("aimi-swarm-login is running: its branch feat/login is not finished"),
  });
  complete(worker);
  const { code, stdout, stderr } = await cliWith(workers, bed);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "left out: aimi-swarm-cart (failed)\n" });
  expect(stdout).toContain("aimi-swarm-login");
  expect(bed.user("show", `${INTO}:login.txt`)).toBe("x\n");
});

test("S1-48 without an engine merge goes by what was known last, and says so", async () => {
  using bed = new GitBed();
  putState(bed, { login: "running" });
  const { workers } = engineWith("login");
  workers.engineError = new AidoError("RUNTIME_UNAVAILABLE", "No engine answers");
  expect(await cliWith(workers, bed)).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/No engine answers; this is what was known last\n.*nothing to merge/s),
  });
});

test("a conflict ends with 5, both sides, and commands that resolve it when they are typed", async () => {
  using bed = new GitBed({ "app.txt": "one\n", "a\u001b]0;x\u0007.txt": "one\n" });
  bed.push("feat/login", { "app.txt": "login \u001b[31mred\n", "a\u001b]0;x\u0007.txt": "1\n" });
  bed.push("feat/cart", { "app.txt": "cart\n", "a\u001b]0;x\u0007.txt": "2\n" });
  putState(bed, { login: "completed", cart: "completed" });
  const dry = await cli(bed, "--dry-run");
  expect(dry.code).toBe(5);
  expect(dry.stdout).toContain("feat/login  feat/cart");
  const { code, stdout } = await cli(bed);
  expect(code).toBe(5);
  expect(stdout).toContain(
    "Stopped: feat/cart (aimi-swarm-cart) conflicts with feat/login (aimi-swarm-login)\n",
  );
  expect(stdout).toContain("    | login \\x1b[31mred\n    and in feat/cart:\n    | cart\n");
  expect(stdout).toContain("  a\\x1b]0;x\\x07.txt (contents)\n");
  expect(stdout).not.toContain("\u001b");
  const { next } = JSON.parse((await cli(bed, "--continue", "--json")).stdout) as { next: string[] };
  const before = bed.userState();
  const shell = (line: string) => bed.git(bed.project, "-c", `alias.x=!${line}`, "x");
  shell(next[0] ?? "");
  expect(() => shell(next[1] ?? "")).toThrow();
  expect((await cli(bed, "--continue")).stderr).toContain("is checked out in");
  shell("git -C ../shop-merge checkout --theirs . && git -C ../shop-merge commit --quiet -am done");
  shell(next[3] ?? "");
  expect(await cli(bed, ...(next[4] ?? "").split(" ").slice(3))).toMatchObject({ code: 0 });
  expect(bed.user("show", `${INTO}:app.txt`)).toBe("cart\n");
  expect(bed.userState()).toEqual(before);
});

test("wrong words are told with what to write; nothing to merge is no error", async () => {
  using bed = new GitBed();
  expect(await cli(bed)).toMatchObject({ code: 4, stderr: expect.stringContaining("No swarm in") });
  expect(await cli(bed, "a", "--into", "x")).toMatchObject({
    code: 4,
    stderr: expect.stringContaining("a is not on origin"),
  });
  expect(await cli(bed, "--continue")).toMatchObject({
    code: 4,
    stderr: expect.stringContaining("There is no merge to continue"),
  });
  putState(bed, { login: "failed" });
  expect(await cli(bed)).toMatchObject({
    code: 0,
    stderr: "No worker has completed; there is nothing to merge\n",
  });
  expect((await cli(bed, "--into", "a b")).code).toBe(2);
  expect((await cli(bed, "--continue", "x")).code).toBe(2);
  expect(await cli(bed, "--dir", bed.directory)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("is not in a git repository"),
  });
});
