import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseState } from "../../../src/core/swarm/state/parse-state.ts";
import { storyJson } from "../../../src/core/swarm/testing/task-file-text.ts";
import { MAIN } from "../../e2e/aido-process.ts";
import { Tmux } from "../../swarm-view/tmux.ts";
import { KEYS } from "../images-bed.ts";
import { expectNoSecretArguments, expectNoSecrets } from "./expect-no-secrets.ts";
import { pullOf, RealSwarm, twoStories } from "./real-swarm.ts";
import { type Asked, Gate, type Step } from "./scripted-model.ts";

const NAMES = ["cart", "login", "search"];
const ACP_AGENT = readFileSync(join(import.meta.dirname, "../../agents/scripted-acp-agent.mjs"), "utf8");

/** The first story makes a file and looks at it, the second changes one that every branch has. */
function work({ branch, story, step }: Asked): Step {
  const name = branch.replace("feat/", "");
  const first: Step[] = [
    { tool: "Write", input: { file_path: `/workspace/src/${name}.txt`, content: `${name} by claude\n` } },
    { tool: "Bash", input: { command: `wc -c < src/${name}.txt > ${name}.size`, description: "Count" } },
    { text: `The ${name} is there.` },
  ];
  const change = { old_string: "shop", new_string: `shop with ${name}` };
  const second: Step[] = [
    { tool: "Read", input: { file_path: "/workspace/README.md" } },
    { tool: "Edit", input: { file_path: "/workspace/README.md", ...change } },
    { text: "README.md says so." },
  ];
  return (story === "US-001" ? first : second)[step] ?? { text: "All is done." };
}

interface Event {
  readonly type: string;
  readonly worker?: string;
  readonly story?: string;
  readonly status?: string;
  readonly state?: string;
  readonly path?: string;
}

test("S1-1 S1-5 S1-6 S1-9 S1-24 S1-27 S1-66 three task files become three workers at once, and Claude Code's work is on three branches", {
  timeout: 150_000,
}, async () => {
  await using swarm = await RealSwarm.make({
    tasks: Object.fromEntries(NAMES.map((name) => [name, twoStories()])),
    script: work,
  });
  const before = swarm.git.userState();
  const { code, stdout, stderr } = await swarm.aido("swarm", "--all", "--json", ...swarm.options);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const events = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Event);
  const of = (name: string) => events.filter(({ worker }) => worker === swarm.worker(name));
  const running = NAMES.map((name) =>
    events.findIndex((one) => isRunning(one) && one.worker === swarm.worker(name)),
  );
  const ended = events.findIndex(({ type, state }) => type === "state" && state === "completed");
  expect(Math.max(...running)).toBeLessThan(ended);
  for (const name of NAMES) {
    const steps = of(name).filter(({ type }) => type === "story");
    expect(steps.map(({ story, status }) => `${story} ${status}`)).toEqual([
      "US-001 in_progress",
      "US-001 completed",
      "US-002 in_progress",
      "US-002 completed",
    ]);
    expect(swarm.subjects(name)).toEqual(["US-001: Story US-001", "US-002: Story US-002"]);
    expect(swarm.atOrigin(name, `src/${name}.txt`)).toBe(`${name} by claude\n`);
    expect(swarm.atOrigin(name, `${name}.size`).trim()).toBe(String(name.length + 11));
    expect(swarm.atOrigin(name, "README.md")).toBe(`shop with ${name}\n`);
    expect(swarm.storiesAtOrigin(name)).toEqual({ "US-001": "completed", "US-002": "completed" });
    expect(swarm.entry(name)).toMatchObject({
      status: "completed",
      prUrl: pullOf({ head: `feat/${name}` }),
      storyProgress: { total: 2, completed: 2, failed: 0, inProgress: 0, pending: 0 },
    });
  }
  expect(events.at(0)).toMatchObject({ type: "swarm", isResumed: false });
  expect(events.at(-1)).toMatchObject({ type: "done", isInterrupted: false });
  const overlaps = events.filter(({ type }) => type === "overlap");
  expect(new Set(overlaps.map(({ path }) => path))).toEqual(new Set(["README.md"]));
  parseState(Buffer.from(swarm.read(".aimi/swarm-state.json")), "swarm-state.json");
  const made = swarm.forge.asked.filter(({ method }) => method === "POST");
  expect(made.map(({ body }) => (body as { head: string }).head).sort()).toEqual([
    "feat/cart",
    "feat/login",
    "feat/search",
  ]);
  // Both secrets were used, so they were somewhere to be found.
  expect(swarm.model.keys).toEqual(new Set([KEYS.ANTHROPIC_API_KEY]));
  expect(new Set(swarm.forge.asked.map(({ authorization }) => authorization))).toEqual(
    new Set([`Bearer ${KEYS.GITHUB_TOKEN}`]),
  );
  await expectNoSecrets(swarm, stdout);
  const after = swarm.git.userState();
  expect(after).toEqual({ ...before, status: expect.any(String) });
  expect(withoutOwn(after.status)).toEqual(withoutOwn(before.status));
});

const isRunning = ({ type, state }: Event) => type === "state" && state === "running";

/** Without the files that a swarm keeps in a project, which git does not know. */
const withoutOwn = (status: string) =>
  status
    .split("\n")
    .filter((line) => !/^\? (\.aido\/|\.aimi\/(swarm-state\.json|\.state\.lock))$/.test(line));

test("S1-64 the board of a real swarm shows workers, stories and what they use, on a real terminal", {
  timeout: 150_000,
}, async () => {
  const gate = new Gate();
  const script = async ({ branch, story, step }: Asked): Promise<Step> => {
    const command = `echo ${story} > ${branch.slice(5)}.txt`;
    if (step === 0) return { tool: "Bash", input: { command, description: "Write" } };
    if (branch === "feat/cart" && story === "US-002") await gate.pass();
    return { text: `${story} is done.` };
  };
  await using swarm = await RealSwarm.make({
    tasks: Object.fromEntries(NAMES.map((name) => [name, twoStories()])),
    script,
  });
  await using terminal = await Tmux.open(110, 32, swarm.env);
  await terminal.type(`cd ${swarm.git.project} && clear`);
  const argv = [process.execPath, MAIN, "swarm", "--all", ...swarm.options].join(" ");
  await terminal.type(`bash -c 'echo $$ >${terminal.pidFile}; exec ${argv}'; echo ended with $?`);
  await gate.reached;
  expectNoSecretArguments();
  const board = await terminal.until((screen) => screen.includes("1 running  2 completed"), 60_000);
  const row = (name: string) => board.split("\n").find((line) => line.startsWith(`${name}-`)) ?? "";
  expect(board.split("\n")[0]).toMatch(
    /^swarm [0-9a-f]{8} {2}█{16}░{4} {2}5\/6 stories {2}\d+s {2}1 running {2}2 completed {2}[\d.]+k tokens {2}1\d turns$/,
  );
  expect(row("cart")).toMatch(/ running +█{10}░{10} +1\/2 +\d+s +\d+ tokens +\d turns +feat\/cart$/);
  for (const name of ["login", "search"])
    expect(row(name)).toMatch(/ completed +█{20} +2\/2 +\d+s +440 tokens +4 turns +feat\//);
  expect(board).toContain("  ✓ US-001 Story US-001\n  ▸ US-002 Story US-002\n  │ ");
  expect(board).toContain("  https://forge.test/team/shop/pull/login");
  gate.open();
  // Not the command line itself, which is on the screen again when the board has gone.
  const end = await terminal.until((screen) => /ended with \d/.test(screen), 60_000);
  expect(end).toContain("ended with 0");
  expect(end).toMatch(/ {2}6\/6 stories {2}\d+s {2}3 completed {2}1\.3k tokens {2}12 turns\n/);
  expect(end).toMatch(/^aimi-swarm-cart-\S+ +\S+ +feat\/cart +completed +2\/2 +https/m);
});

test("S1-6 S1-24 S1-70 an agent of the Agent Client Protocol works in three workers too, and plain lines tell of it", {
  timeout: 90_000,
}, async () => {
  const stories = [storyJson("US-001", { description: "permission" })];
  await using swarm = await RealSwarm.make({
    tasks: Object.fromEntries(NAMES.map((name) => [name, stories])),
    files: { "tools/agent.mjs": ACP_AGENT },
  });
  const agent = ["--agent", "acp", "--", "node", "/workspace/tools/agent.mjs"];
  const { code, stdout, stderr } = await swarm.aido("swarm", "--all", ...swarm.options, ...agent);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  for (const name of NAMES) {
    expect(swarm.atOrigin(name, "allowed.txt")).toBe("written by the agent\n");
    const said = stdout.split("\n").filter((line) => line.startsWith(`${swarm.worker(name).slice(11)} `));
    const pull = pullOf({ head: `feat/${name}` });
    expect(said.map((line) => line.replace(/^\S+ +\| /, "").replace(/\d+s/, "1s"))).toEqual([
      `pending: The ${name}, 1 story, on feat/${name}`,
      ...["creating", "running", "US-001 in progress: Story US-001", "Let me see."],
      "US-001 completed: Story US-001 (Done.)",
      `completed: 1 of 1 stories completed, 1s, 17 tokens, 2 turns, ${pull}`,
    ]);
  }
  expect(swarm.statuses(...NAMES)).toEqual(NAMES.map(() => "completed"));
  expect(swarm.model.asked).toEqual([]);
  await expectNoSecrets(swarm, stdout);
});

test("S1-13 S1-15 task files that only the project's image has are worked on, and nothing that the image brought is committed", {
  timeout: 90_000,
}, async () => {
  await using swarm = await RealSwarm.make({
    tasks: { cart: twoStories(), login: twoStories() },
    isUncommitted: true,
    files: { "agent.sh": "cat >/dev/null; cat node_modules/dep/index.js >> seen.txt\n" },
  });
  await using _image = await swarm.bringSettings();
  const agent = ["--agent", "command", "--", "sh", "/workspace/agent.sh"];
  // The second time the branches say what is done, for the files do not.
  for (const _time of ["first", "second"]) {
    expect(await swarm.aido("swarm", "--all", ...swarm.options, ...agent)).toMatchObject({ code: 0 });
    for (const name of ["cart", "login"]) {
      expect(swarm.entry(name)).toMatchObject({ status: "completed", storyProgress: { completed: 2 } });
      expect(swarm.subjects(name)).toEqual(["US-001: Story US-001", "US-002: Story US-002"]);
      const files = swarm.git.git(swarm.git.origin, "ls-tree", "-r", "--name-only", `feat/${name}`);
      expect(files.trim().split("\n")).toEqual(["README.md", "agent.sh", "seen.txt"]);
      expect(swarm.atOrigin(name, "seen.txt")).toBe("dep\ndep\n");
    }
  }
  expect(await swarm.aido("swarm", "cleanup")).toMatchObject({ code: 0 });
});
