import { expect, test } from "vitest";
import { RealSwarm, twoStories } from "./real-swarm.ts";
import { type Asked, Gate, type Step } from "./scripted-model.ts";

/** Each story writes a file of its name; the second one's agent then goes on and on. */
function endless({ story, step }: Asked): Step {
  if (step === 0)
    return { tool: "Bash", input: { command: `echo ${story} > ${story}.txt`, description: "Write" } };
  if (story === "US-001") return { text: "It is written." };
  return { tool: "Bash", input: { command: "sleep 300", description: "Think" } };
}

const NAMES = ["cart", "login", "search"];

/** What its last line says, without the words in front of it. */
const lastLine = (stdout: string, name: string) =>
  stdout
    .split("\n")
    .filter((line) => line.startsWith(`${name}-`))
    .map((line) => line.replace(/^\S+ +\| /, ""))
    .at(-1);

test("S1-24 S1-70 a worker at its budget of tokens ends by itself as stopped, tells why, and has pushed what there was; a larger budget goes on", {
  timeout: 150_000,
}, async () => {
  let isEndless = true;
  const script = (asked: Asked): Step => (isEndless ? endless(asked) : { text: "It is done." });
  await using swarm = await RealSwarm.make({ tasks: { cart: twoStories() }, script });
  // Three answers of the model are 330 tokens; with the fourth, which is beyond it, the second file is there.
  const budget = ["--max-tokens", "400"];
  const { code, stdout, stderr } = await swarm.aido("swarm", "--all", ...swarm.options, ...budget);
  expect([code, swarm.statuses("cart")], stdout + stderr).toEqual([1, ["stopped"]]);
  expect(lastLine(stdout, "cart")).toMatch(
    /^stopped: The worker's budget of 400 tokens is used up \(AIMI_MAX_TOKENS\), exit code 130, 1 of 2 stories completed/,
  );
  expect(swarm.subjects("cart")).toEqual(["US-001: Story US-001", expect.stringContaining("US-002")]);
  expect(swarm.atOrigin("cart", "US-002.txt")).toBe("US-002\n");
  expect(swarm.storiesAtOrigin("cart")).toMatchObject({ "US-001": "completed" });
  const same = await swarm.aido("swarm", "resume");
  expect([same.code, swarm.statuses("cart")], same.stdout).toEqual([1, ["stopped"]]);
  expect(lastLine(same.stdout, "cart")).toMatch(
    /^stopped: Its budget is used up: 4\d\d of 400 tokens are used/,
  );
  isEndless = false;
  const more = await swarm.aido("swarm", "resume", "--max-tokens", "4000");
  expect([more.code, swarm.statuses("cart")], more.stdout).toEqual([0, ["completed"]]);
  expect(swarm.storiesAtOrigin("cart")).toEqual({ "US-001": "completed", "US-002": "completed" });
});

test("S1-71 a swarm whose time is over stops all its workers, which push what there is, and begins no other; a longer one goes on", {
  timeout: 150_000,
}, async () => {
  const gate = new Gate();
  const held = new Set<string>();
  const script = async (asked: Asked): Promise<Step> => {
    const step = endless(asked);
    if ("text" in step || asked.step === 0) return step;
    held.add(asked.branch);
    if (held.size === 2) void gate.pass();
    await gate.opened;
    return { text: "It is done." };
  };
  await using swarm = await RealSwarm.make({
    tasks: { cart: twoStories(), login: twoStories(), search: twoStories() },
    script,
  });
  await using running = swarm.start(
    ...["swarm", "--all", "--max", "2", "--swarm-max-time", "10m"],
    ...swarm.options,
  );
  await gate.reached;
  running.child.kill("SIGINT");
  expect((await running.end()).code).toBe(130);
  // What it ran for before is more than that.
  const over = await swarm.aido("swarm", "resume", "--swarm-max-time", "1s");
  expect([over.code, swarm.statuses(...NAMES)], over.stdout).toEqual([1, ["stopped", "stopped", "pending"]]);
  const reason = "The swarm's budget is used up: its time of 1 s is over";
  expect(over.stdout + over.stderr).toContain(`${reason}; its workers are stopped`);
  for (const name of ["cart", "login"]) {
    expect(lastLine(over.stdout, name)).toContain(
      `stopped: ${reason}, exit code 130, 1 of 2 stories completed`,
    );
    expect(swarm.atOrigin(name, "US-002.txt")).toBe("US-002\n");
    expect(swarm.storiesAtOrigin(name)).toMatchObject({ "US-001": "completed" });
  }
  expect(await swarm.containers()).toHaveLength(2);
  gate.open();
  const more = await swarm.aido("swarm", "resume", "--swarm-max-time", "10m");
  expect([more.code, swarm.statuses(...NAMES)], more.stdout).toEqual([0, NAMES.map(() => "completed")]);
});
