import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { storyJson, taskFileText } from "../../core/swarm/testing/task-file-text.ts";
import type { GlobalOptions } from "../context.ts";
import { runCli } from "../run-cli.ts";
import { fakeContext } from "../testing/fake-context.ts";

let project = "";
beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), "aido-swarm-cli-"));
  mkdirSync(join(project, ".aimi/tasks"), { recursive: true });
});
afterEach(() => rmSync(project, { recursive: true, force: true }));

const put = (name: string, text: string) => writeFileSync(join(project, ".aimi/tasks", name), text);

test("S1-2 lists the stories of all task files by priority, those that are ready marked", async () => {
  const second = storyJson("US-002", { dependsOn: ["US-001"] });
  put("login-tasks.json", taskFileText([second, storyJson("US-001")]));
  const { code, stdout } = await cli("swarm-tasks");
  expect(code).toBe(0);
  expect(stdout.split("\n").map((line) => line.split(/ {2,}/).slice(0, 3))).toEqual([
    [".aimi/tasks/login-tasks.json: Sign in (feat/sign-in)"],
    ["STORY", "STATUS", "TITLE"],
    ["US-001", "ready", "Story US-001"],
    ["US-002", "pending", "Story US-002"],
    [""],
  ]);
  expect(JSON.parse((await cli("swarm-tasks", "--json")).stdout)).toMatchObject([
    {
      valid: true,
      metadata: { maxConcurrency: 4 },
      stories: [{ id: "US-002", ready: false }, { ready: true }],
    },
  ]);
});

test("tells every problem of a file with its line, lists the others, and ends with 1", async () => {
  put("a-tasks.json", taskFileText());
  put("b-tasks.json", '{\n "schemaVersion": "1"}');
  const { code, stdout, stderr } = await cli("swarm-tasks");
  expect(code).toBe(1);
  expect(stdout).toContain("US-001");
  expect(stderr).toContain(
    'Error: Invalid tasks.json - schemaVersion is "1", which is not known (.aimi/tasks/b-tasks.json:2)\nFix: Set it to "3.0"',
  );
  expect(stderr).toContain("Error: Invalid tasks.json - userStories is missing");
  expect((await cli("swarm-tasks", ".aimi/tasks/a-tasks.json")).code).toBe(0);
  expect(await cli("swarm-tasks", "none.json")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("Fix: "),
  });
  const json = JSON.parse((await cli("--json", "swarm-tasks")).stdout);
  expect(json).toMatchObject([{ valid: true }, { valid: false, error: { code: "TASK_FILE_INVALID" } }]);
});

test("says so when there are none", async () => {
  expect(await cli("swarm-tasks")).toMatchObject({
    code: 0,
    stdout: "",
    stderr: "No task files in .aimi/tasks\n",
  });
});

test("S1-62 swarm-approve ends with 0 for what is approved and 1 for the rest", async () => {
  const command = ["docker", "exec", "-i", "aimi-x", "/opt/aimi/acp-adapter"];
  expect(await cli("swarm-approve", "--", ...command)).toMatchObject({
    code: 0,
    stdout: "approved: adapter\n",
  });
  expect(await cli("swarm-approve", command.join(" "))).toMatchObject({ code: 0 });
  expect(await cli("swarm-approve", "--", ...command, "--privileged")).toMatchObject({
    code: 1,
    stdout: "refused: --privileged is never approved\n",
  });
  expect(await cli("swarm-approve", "--", ...command, "--json")).toMatchObject({ code: 1 });
  expect(
    JSON.parse((await cli("--json", "swarm-approve", "--", `${command.join(" ")};id`)).stdout),
  ).toMatchObject({
    approved: false,
  });
  expect(await cli("swarm-approve")).toMatchObject({ code: 1 });
  expect(await cli("swarm-approve", ...command)).toMatchObject({ code: 1 });
});

test("swarm-approve --policy prints the policy, and approves nothing along with it", async () => {
  expect(JSON.parse((await cli("swarm-approve", "--policy")).stdout)).toMatchObject({ version: 1 });
  expect((await cli("swarm-approve", "--policy", "rm -rf /")).code).toBe(1);
});

async function cli(...argv: string[]) {
  const base = fakeContext({ cwd: project });
  const makeContext = (globals: GlobalOptions) => Promise.resolve({ ...base, globals });
  const code = await runCli(argv, { version: "1.2.3", makeContext });
  return { code, stdout: base.stdout.text, stderr: base.stderr.text };
}
