import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  BYPASSES,
  ADAPTER as EXEC,
  CONTAINER_ID as ID,
  PROGRESS,
  TASK_FILE as TASKS,
} from "../testing/bypass-attempts.ts";
import { checkCommand } from "./check-command.ts";
import { APPROVAL_POLICY } from "./policy.ts";
import { isInsideProject } from "./project-path.ts";

let project = "";
beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), "aido-approve-"));
  mkdirSync(join(project, "packages/web"), { recursive: true });
  writeFileSync(join(project, "file"), "");
  symlinkSync("/etc", join(project, "out"));
  symlinkSync("packages", join(project, "in"));
});
afterAll(() => rmSync(project, { recursive: true, force: true }));

const check = (...command: string[]) =>
  checkCommand(command, { isInside: (path) => isInsideProject(project, path) });

describe("S1-62 approves", () => {
  test.each([
    [
      "sandbox-manager",
      `sandbox-manager create aimi-swarm-login aimi-sandbox-shop:latest ${TASKS} feat/login`,
    ],
    ["sandbox-manager", "sandbox-manager.sh create aimi-swarm-login aimi-sandbox:base"],
    ["sandbox-manager", "sandbox-manager status aimi-swarm-login"],
    ["sandbox-manager", "aido sandbox-manager create aimi-swarm-login aimi-sandbox:base"],
    ["sandbox-manager", "aido sandbox-manager clean"],
    ["sandbox-manager", "sandbox-manager remove aimi-swarm-login"],
    ["sandbox-manager", "sandbox-manager rm aimi-x"],
    ...["list", "ls", "cleanup", "clean", "check-runtime", "help"].map((verb) => [
      "sandbox-manager",
      `sandbox-manager ${verb}`,
    ]),
    ["build-image", "build-project-image.sh"],
    ["build-image", "build-image ."],
    ["build-image", "aido build-image packages/web"],
    ["build-image", "build-image ./packages/web/"],
    ["build-image", "build-image in/web"],
    ["swarm", "aido swarm-init"],
    ["swarm", "aimi-cli.sh swarm-init --force"],
    ["swarm", `aido swarm-add ${ID} aimi-x ${TASKS} feat/login`],
    ["swarm", "aido swarm-update aimi-x --acp-pid null --status running"],
    ["swarm", "aido swarm-update aimi-x --pr-url https://github.com/o/r/pull/3"],
    ["swarm", `aido swarm-update aimi-x --story-progress '${PROGRESS}'`],
    ["swarm", "aido swarm-remove aimi-x"],
    ...["swarm-status", "swarm-list", "swarm-cleanup", "swarm-tasks"].map((verb) => [
      "swarm",
      `aido ${verb}`,
    ]),
    ["swarm", `aido swarm-tasks ${TASKS}`],
    ["adapter", EXEC],
    ["adapter", ` ${EXEC.replaceAll(" ", "  ")} `],
    ["adapter", "docker exec -i aimi-x node /opt/aimi/acp-adapter.mjs"],
    ["adapter", "docker exec -i aimi-x python3 /opt/aimi/acp-adapter.py"],
  ])("%s: %s", async (rule, line) => {
    expect(await check(line ?? "")).toMatchObject({ approved: true, rule });
    const words = (line ?? "")
      .split(/ +/)
      .filter(Boolean)
      .map((word) => word.replace(/^'(.*)'$/, "$1"));
    expect(await check(...words)).toMatchObject({ approved: true, rule, words });
  });
});

describe("S1-62 S1-63 refuses", () => {
  test.each(Object.entries(BYPASSES))("%s", async (_, lines) => {
    const passed: string[] = [];
    for (const line of lines) {
      for (const command of [[line], line.split(" "), ["docker", line], [line, ""]]) {
        const approval = await check(...command);
        if (approval.approved) passed.push(command.join("␣"));
        else expect(approval.reason).not.toBe("");
      }
    }
    expect(passed).toEqual([]);
  });

  test("words that hold more than a word", async () => {
    expect(await check("docker exec -i", "aimi-x", "/opt/aimi/acp-adapter")).toMatchObject({
      approved: false,
    });
    expect(await check("docker", "exec", "-i", "aimi-x", "/opt/aimi/acp-adapter", "")).toMatchObject({
      approved: false,
    });
    expect(await check()).toEqual({ approved: false, reason: "there is no command" });
  });

  test("with a reason that says where", async () => {
    expect(await check("docker exec -it aimi-x /opt/aimi/acp-adapter")).toMatchObject({
      reason: "-it stands where -i must be",
    });
    expect(await check("docker exec -i aimi-x")).toMatchObject({
      reason: "/opt/aimi/acp-adapter is missing",
    });
    expect(await check("docker run --privileged x")).toMatchObject({
      reason: "--privileged is never approved",
    });
    expect(await check("rm x")).toMatchObject({ reason: "rm is not a command of the policy" });
    expect(await check(`${EXEC}; id`)).toMatchObject({ reason: expect.stringContaining("; (U+003B)") });
    expect(await check("build-image out")).toMatchObject({
      reason: expect.stringContaining("inside this project"),
    });
  });
});

test("S1-62 the policy as a file has the four patterns and is what is checked", () => {
  const rules = [...new Set(APPROVAL_POLICY.allow.map(({ rule }) => rule))];
  expect(rules).toEqual(["sandbox-manager", "build-image", "swarm", "adapter"]);
  const file = new URL("../../../../../../docs/reference/swarm-approval-policy.json", import.meta.url);
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(APPROVAL_POLICY);
});

test("S1-63 the policy names docker only for the adapter, with no wildcard and no --privileged", () => {
  for (const { rule, command, options = {} } of APPROVAL_POLICY.allow) {
    expect([...command, ...Object.keys(options)].join(" ")).not.toMatch(/\*|privileged/);
    if (rule !== "adapter") expect(command).not.toContain("docker");
    else expect(command.slice(0, 4)).toEqual(["docker", "exec", "-i", "<container>"]);
  }
});
