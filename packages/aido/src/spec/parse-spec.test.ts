import { isAidoError, type RunSpec } from "@aido/sdk/protocol";
import { describe, expect, test } from "vitest";
import { parseSpec } from "./parse-spec.ts";
import type { SpecProblem } from "./spec-problem.ts";

const MINIMAL = "name: replay-incident\nruntime: python\nttl: 20m\n";

async function problemsOf(text: string): Promise<readonly SpecProblem[]> {
  try {
    await parseSpec(text);
  } catch (thrown) {
    if (isAidoError(thrown, "INVALID_SPEC")) return thrown.details["problems"] as readonly SpecProblem[];
    throw thrown;
  }
  throw new Error("the spec was accepted");
}

async function firstProblem(text: string): Promise<SpecProblem> {
  const [problem] = await problemsOf(text);
  if (problem === undefined) throw new Error("no problem was told");
  return problem;
}

describe("a spec that is right", () => {
  test("S0-8 S0-10 S0-11 S0-12 S0-13 three keys are enough and the rest has defaults", async () => {
    expect(await parseSpec(MINIMAL)).toEqual({
      name: "replay-incident",
      runtime: "python",
      ttlMs: 1_200_000,
      inputs: [],
      outputs: [],
      limits: {},
      timeoutMs: 0,
      env: {},
      network: "none",
      steps: [],
    } satisfies RunSpec);
  });

  test.each([
    ["30s", 30_000],
    ["20m", 1_200_000],
    ["1h", 3_600_000],
    ["720h", 2_592_000_000],
  ])("S0-13 S0-75 the ttl %s is %i ms", async (ttl, ms) => {
    expect((await parseSpec(`name: a\nruntime: bash\nttl: ${ttl}\n`)).ttlMs).toBe(ms);
    expect((await parseSpec(`name: a\nruntime: bash\nttl: "${ttl}"\n`)).ttlMs).toBe(ms);
  });

  test("S0-14 S0-15 inputs and outputs are lists of paths, and /outputs/ may be written out", async () => {
    const spec = await parseSpec(
      `${MINIMAL}inputs: ["data/*.csv", logs/app.log]\noutputs:\n  - report.md\n  - /outputs/plots/\n`,
    );
    expect(spec.inputs).toEqual(["data/*.csv", "logs/app.log"]);
    expect(spec.outputs).toEqual(["report.md", "plots/"]);
  });

  test("S0-22 any other runtime is an image", async () => {
    for (const image of [
      "debian:12-slim",
      "ghcr.io/team/tool:v1.2",
      "localhost:5000/a/b_c",
      `busybox@sha256:${"a".repeat(64)}`,
    ]) {
      expect((await parseSpec(`name: a\nruntime: ${image}\nttl: 5m\n`)).runtime).toBe(image);
    }
  });

  test("S0-46 resources set limits and the timeout of a task", async () => {
    const spec = await parseSpec(
      `${MINIMAL}resources: { cpu: 0.5, memory: 256m, pids: 50, disk: 2GiB, output: 64m, openFiles: 256, timeout: 90s }\n`,
    );
    expect(spec.limits).toEqual({
      cpus: 0.5,
      memoryBytes: 256 * 1024 ** 2,
      pids: 50,
      diskBytes: 2 * 1024 ** 3,
      outputBytes: 64 * 1024 ** 2,
      openFiles: 256,
    });
    expect(spec.timeoutMs).toBe(90_000);
  });

  test("env keeps the spelling of numbers and booleans", async () => {
    const spec = await parseSpec(
      `${MINIMAL}env: { PORT: 8080, VERSION: 1.10, DEBUG: true, NAME: "", HEX: 0x1F }\n`,
    );
    expect(spec.env).toEqual({ PORT: "8080", VERSION: "1.10", DEBUG: "true", NAME: "", HEX: "0x1F" });
  });

  test("S0-91 the network is none unless the spec asks for a bridge", async () => {
    expect((await parseSpec(MINIMAL)).network).toBe("none");
    expect((await parseSpec(`${MINIMAL}network: bridge\n`)).network).toBe("bridge");
  });

  test("S0-92 steps are ordered tasks with a name, a timeout and variables of their own", async () => {
    const spec = await parseSpec(
      `${MINIMAL}steps:\n  - { name: fetch, task: ./steps/fetch.py }\n  - name: report\n    task: report.sh\n    timeout: 10s\n    env: { TITLE: x }\n`,
    );
    expect(spec.steps).toEqual([
      { name: "fetch", task: "steps/fetch.py", timeoutMs: 0, env: {} },
      { name: "report", task: "report.sh", timeoutMs: 10_000, env: { TITLE: "x" } },
    ]);
  });

  test("S0-93 a template gives what the spec does not say", async () => {
    const plain = await parseSpec("template: python\n");
    expect(plain).toMatchObject({ name: "python", runtime: "python", ttlMs: 600_000 });
    expect(plain.env["PYTHONUNBUFFERED"]).toBe("1");
    const own = await parseSpec("template: node\nname: mine\nttl: 5s\nenv: { NODE_ENV: test }\n");
    expect(own).toMatchObject({ name: "mine", runtime: "node", ttlMs: 5_000 });
    expect(own.env).toMatchObject({ NODE_ENV: "test", NO_UPDATE_NOTIFIER: "1" });
  });

  test("an alias stands for what it names", async () => {
    const spec = await parseSpec(`${MINIMAL}inputs: &files [a.txt]\noutputs: *files\n`);
    expect(spec.outputs).toEqual(["a.txt"]);
  });
});

describe("a spec that is wrong", () => {
  test("S0-84 every problem is told at once, with file, line, column, the text and the fix", async () => {
    const text = "name: My Task\nruntime: python\nttl: 5x\n\nresources:\n  cpus: 2\n";
    await expect(parseSpec(text, "deploy/sandbox.yaml")).rejects.toThrow(
      /^deploy\/sandbox.yaml has 3 problems\n/,
    );
    const [name, ttl, cpus] = await problemsOf(text);
    expect(name).toMatchObject({ line: 1, column: 7, path: "name", text: "My Task" });
    expect(name?.fix).toContain("name: my-task");
    expect(ttl).toMatchObject({ line: 3, column: 6, path: "ttl", text: "5x" });
    expect(ttl?.fix).toContain("ttl: 5m");
    expect(cpus).toMatchObject({ line: 6, column: 3, path: "resources.cpus", text: "cpus" });
    expect(cpus?.fix).toBe("Did you mean cpu?");
  });

  test("S0-84 one problem is one line: file, line and column first", async () => {
    await expect(parseSpec("name: a\nruntime: bash\nttl: 5x\n")).rejects.toThrow(
      /^sandbox.yaml:3:6: ttl is not a duration \(found: 5x\)\. Write a number and s, m or h/,
    );
  });

  test.each([
    ["5x", "not a duration"],
    ["0s", "more than zero"],
    ["00m", "more than zero"],
    ["5", "not a duration"],
    ["-5m", "not a duration"],
    ["1.5h", "not a duration"],
    ["721h", "more than 30 days"],
    ["99999999999999999999h", "more than 30 days"],
    ["1d", "not a duration"],
    ['""', "not a duration"],
    ["[5m]", "no value"],
    ["", "no value"],
  ])("S0-13 the ttl %j is refused", async (ttl, message) => {
    expect((await firstProblem(`name: a\nruntime: bash\nttl: ${ttl}\n`)).message).toContain(message);
  });

  test("S0-11 S0-12 S0-13 what is required and missing is named", async () => {
    for (const text of ["", "# nothing\n", "inputs: []\n"]) {
      const problems = await problemsOf(text);
      expect(problems.map((problem) => problem.message)).toEqual([
        "name is missing",
        "runtime is missing",
        "ttl is missing",
      ]);
    }
  });

  test.each([
    ["runtme: python", "runtime"],
    ["tttl: 5m", "ttl"],
    ["input: [a]", "inputs"],
    ["enviroment: {}", undefined],
    ["netwrok: none", "network"],
  ])("S0-84 an unknown key (%s) is told with the nearest name", async (line, nearest) => {
    const problem = await firstProblem(`${MINIMAL}${line}\n`);
    expect(problem).toMatchObject({ line: 4, column: 1 });
    if (nearest === undefined) expect(problem.fix).toContain("The keys here are name, runtime");
    else expect(problem.fix).toBe(`Did you mean ${nearest}?`);
  });

  test("S0-84 broken YAML is told with its line", async () => {
    expect(await firstProblem("name: a\nruntime: [x\nttl: 5m\n")).toMatchObject({ line: 3 });
    expect(await firstProblem("name: a\nname: b\n")).toMatchObject({ line: 2, column: 1 });
    expect(await firstProblem("name: a\n\truntime: b\n")).toMatchObject({ line: 2 });
    expect(await firstProblem("- a\n- b\n")).toMatchObject({ line: 1, message: "the file must be a map" });
    expect(await firstProblem("just words\n")).toMatchObject({ line: 1, message: "the file must be a map" });
    expect(await firstProblem(`${MINIMAL}---\nname: b\n`)).toMatchObject({
      line: 4,
      message: "another document begins here",
    });
  });

  test.each([
    ["name: 123", "must be text"],
    ["name: -a", "may have up to 63"],
    [`name: ${"a".repeat(64)}`, "may have up to 63"],
  ])("S0-11 %s is no name", async (line, message) => {
    expect((await firstProblem(`${line}\nruntime: bash\nttl: 5m\n`)).message).toContain(message);
  });

  test.each(["Python 3", "--privileged", "-v", "a b", "UPPER/case", "../x", "image:"])(
    "S0-12 %j is no runtime",
    async (runtime) => {
      const problem = await firstProblem(`name: a\nruntime: "${runtime}"\nttl: 5m\n`);
      expect(problem).toMatchObject({ line: 2, path: "runtime" });
    },
  );

  test.each([
    ["inputs: [../secret]", "inputs[0]"],
    ["inputs: [/etc/passwd]", "inputs[0]"],
    ["inputs: [ok, a/../../b]", "inputs[1]"],
    ["outputs: [../x]", "outputs[0]"],
    ["outputs: [/etc/x]", "outputs[0]"],
    [`outputs: [${"x,".repeat(101)}]`, "outputs"],
    ["inputs: data", "inputs"],
    ["inputs: [1]", "inputs[0]"],
    ["inputs: [null]", "inputs[0]"],
  ])("S0-14 S0-15 %s is refused", async (line, path) => {
    expect(await firstProblem(`${MINIMAL}${line}\n`)).toMatchObject({ line: 4, path });
  });

  test.each([
    ["cpu: 0", "cpu"],
    ["cpu: many", "cpu"],
    ["memory: 1m", "less than 6 MiB"],
    ["memory: 12x", "not a size"],
    ["memory: -1g", "not a size"],
    ["pids: 1.5", "whole number"],
    ["pids: lots", "whole number"],
    ["disk: 0", "not a size"],
    ["timeout: 0s", "more than zero"],
  ])("S0-46 resources with %s are refused", async (line, message) => {
    const problem = await firstProblem(`${MINIMAL}resources:\n  ${line}\n`);
    expect(problem).toMatchObject({ line: 5 });
    expect(problem.message).toContain(message);
  });

  test("env with a bad name or no value is refused", async () => {
    expect((await firstProblem(`${MINIMAL}env: { 1A: x }\n`)).message).toContain("not a variable's name");
    expect((await firstProblem(`${MINIMAL}env:\n  A:\n`)).message).toContain("has no value");
    expect((await firstProblem(`${MINIMAL}env: [A=b]\n`)).message).toContain("must be a map");
  });

  test("S0-80 the host's network cannot be asked for by a spec", async () => {
    expect((await firstProblem(`${MINIMAL}network: host\n`)).fix).toContain("--dangerous-allow-host-network");
    expect((await firstProblem(`${MINIMAL}network: wide\n`)).message).toContain("none or bridge");
  });

  test.each([
    ["steps: []", "steps is empty"],
    ["steps: [{ task: a.sh }]", "has no name"],
    ["steps: [{ name: a }]", "has no task"],
    ["steps: [{ name: a, task: a.sh }, { name: a, task: b.sh }]", "two steps have this name"],
    ["steps: [{ name: A/B, task: a.sh }]", "may have up to 40"],
    ["steps: [{ name: a, task: ../a.sh }]", "leads out of the project"],
    ["steps: [{ name: a, tsk: a.sh }]", "unknown key"],
    ["steps: { name: a }", "must be a list"],
  ])("S0-92 %s is refused", async (line, message) => {
    const messages = (await problemsOf(`${MINIMAL}${line}\n`)).map((problem) => problem.message);
    expect(messages).toContainEqual(expect.stringContaining(message));
  });

  test("S0-93 an unknown template is refused with those that exist", async () => {
    expect((await firstProblem("template: ruby\nname: a\nruntime: bash\nttl: 5m\n")).fix).toBe(
      "The templates are python, node, bash.",
    );
  });

  test("a spec of more than 1 MiB is refused unread", async () => {
    await expect(parseSpec(`# ${"x".repeat(1_048_576)}`)).rejects.toThrow(/larger than 1 MiB/);
  });

  test("nested aliases cost nothing", async () => {
    const bombs = ["a: &a [x, x]"];
    for (let i = 0; i < 40; i++)
      bombs.push(`k${i}: &k${i} [*${i === 0 ? "a" : `k${i - 1}`}, *${i === 0 ? "a" : `k${i - 1}`}]`);
    await expect(parseSpec(`${MINIMAL}${bombs.join("\n")}\ninputs: *k39\n`)).rejects.toThrow(/unknown key/);
  });
});
