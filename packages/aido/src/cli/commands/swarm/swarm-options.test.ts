import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { doAll } from "../../../core/swarm/testing/swarm-bed.ts";
import { SwarmCli } from "../../testing/swarm-cli.ts";

let cli: SwarmCli;
beforeEach(() => {
  cli = new SwarmCli();
});
afterEach(() => cli[Symbol.dispose]());

test("S1-65 without Sysbox it is refused, and never replaced by something weaker", async () => {
  cli.task("a");
  cli.workers.isolations = ["container"];
  expect(await cli.aido(["swarm"])).toMatchObject({ code: 9, stderr: expect.stringContaining("sysbox") });
  expect(cli.workers.all.size).toBe(0);
  expect((await cli.aido(["swarm", "--isolation", "container"])).code).toBe(0);
  expect(cli.workers.worker("aimi-swarm-a").request.isolation).toBe("container");
});

test("S1-65 missing keys are warned of", async () => {
  cli.task("a");
  const { stderr } = await cli.aido(["swarm"], { env: { ANTHROPIC_API_KEY: "", GITHUB_TOKEN: "" } });
  expect(stderr).toContain("warning: ANTHROPIC_API_KEY is not set");
  expect(stderr).toContain("warning: GITHUB_TOKEN is not set");
});

test("S1-65 without origin nothing begins", async () => {
  cli.task("a");
  cli.bed.user("remote", "remove", "origin");
  expect(await cli.aido(["swarm"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("git remote add origin"),
  });
});

test("the agent, its budgets and variables reach the adapter, values are written nowhere, and resume keeps them", async () => {
  cli.task("a");
  cli.workers.onStart = (worker) => worker.finish(1);
  const flags = [
    "--agent",
    "acp",
    "--model",
    "m1",
    "--max-turns",
    "7",
    "--max-time",
    "90s",
    "--env",
    "EXTRA",
  ];
  const env = { EXTRA: "secret-extra" };
  await cli.aido(["swarm", ...flags, "--", "my-agent", "--acp"], { env });
  const expected = {
    AIMI_AGENT: "acp",
    AIMI_AGENT_ARGV: '["my-agent","--acp"]',
    AIMI_MODEL: "m1",
    AIMI_MAX_TURNS: "7",
    AIMI_MAX_SECONDS: "90",
    EXTRA: "secret-extra",
    GITHUB_TOKEN: "secret-token",
  };
  expect(cli.workers.worker("aimi-swarm-a").started?.env).toMatchObject(expected);
  const kept = readFileSync(join(cli.bed.project, ".aimi/swarm/aimi-swarm-a.json"), "utf8");
  expect(kept + JSON.stringify(cli.onDisk())).not.toContain("secret");
  cli.workers.onStart = doAll;
  expect((await cli.aido(["swarm", "resume", "--max-turns", "9"], { env })).code).toBe(0);
  expect(cli.workers.worker("aimi-swarm-a").started?.env).toMatchObject({ ...expected, AIMI_MAX_TURNS: "9" });
});

test("how workers are run is not taken from files that the repository brings", async () => {
  cli.task("a");
  cli.workers.onStart = (worker) => worker.finish(1);
  await cli.aido(["swarm", "--isolation", "container", "--env", "EXTRA"], { env: { EXTRA: "x" } });
  cli.bed.user("add", "--force", ".aimi");
  cli.workers.onStart = doAll;
  const { stderr } = await cli.aido(["swarm", "resume"], { env: { EXTRA: "x" } });
  expect(stderr).toContain("is not taken from there");
  expect(cli.workers.worker("aimi-swarm-a").request.isolation).toBe("sysbox");
  expect(cli.workers.worker("aimi-swarm-a").started?.env["EXTRA"]).toBeUndefined();
});
