import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { docker } from "../backends/docker-cli.ts";
import { EngineGate, type Hold } from "../backends/engine-gate.ts";
import { until } from "../contract/driver-backend.ts";
import { Project } from "../e2e/project.ts";

const BIG_BYTES = 256 * 1024 ** 2;
/** What it leaves takes a moment to capture, and nothing of the disk. */
const TASK = `echo begun
while [ ! -e /work/go ]; do sleep 0.02; done
truncate -s ${BIG_BYTES} /outputs/big
`;
const CODES = { SIGINT: 130, SIGTERM: 143 } as const;

interface Phase {
  readonly name: string;
  /** The call that does not come back. */
  readonly hold?: Hold;
  /** Where the task is by then; before it has begun there is no run to be kept. */
  readonly task: "unborn" | "running" | "over";
  /** Of the sandbox's outputs, what is there by then. */
  readonly output?: string;
}

const asks = (call: RegExp): Hold => ({ call, isDone: false });
const isNotTold = (call: RegExp): Hold => ({ call, isDone: true });

const PHASES: readonly Phase[] = [
  { name: "asks the engine what it can do", hold: asks(/^GET \/info/), task: "unborn" },
  { name: "asks for the image", hold: asks(/^GET \/images/), task: "unborn" },
  { name: "asks for a container", hold: asks(/^POST .*\/create/), task: "unborn" },
  { name: "is not told of its container", hold: isNotTold(/^POST .*\/create/), task: "unborn" },
  { name: "asks for its start", hold: asks(/^POST .*\/start/), task: "unborn" },
  { name: "is not told of its start", hold: isNotTold(/^POST .*\/start/), task: "unborn" },
  { name: "runs the task", task: "running" },
  // The outputs are captured while the container is removed, and the run is not over before both are.
  { name: "captures the outputs", hold: asks(/^DELETE /), task: "over", output: "big" },
  { name: "asks for the removal", hold: asks(/^DELETE /), task: "over", output: "summary.json" },
  { name: "is not told of the removal", hold: isNotTold(/^DELETE /), task: "over", output: "summary.json" },
];

describe.each(["SIGINT", "SIGTERM", "SIGKILL"] as const)("%s to a run on Docker", (signal) => {
  test.each(PHASES.map((phase) => [phase.name, phase] as const))(
    "while it %s leaves no container, and the run settled",
    async (name, { hold, task, output }) => {
      await using project = await Project.make("docker", { "t.sh": TASK });
      await using gate = await EngineGate.open(project.path("engine.sock"), hold);
      await using running = project.start(["run", "--image", "aido-test:python", "t.sh"], {
        env: { DOCKER_HOST: gate.host },
      });
      if (task !== "unborn") await running.until("begun");
      if (task === "over") await letGo(project);
      // The engine is asked before anything else; until the records are open, a signal ends aido as any program.
      const sign = output === undefined ? ".aido/aido.db" : `${await homeOf(project)}/outputs/${output}`;
      await until(`it ${name}`, () => {
        if (running.child.exitCode !== null) throw new Error(`it ended before: ${running.stderr}`);
        return (hold === undefined || gate.held > 0) && existsSync(project.path(sign));
      });

      running.child.kill(signal);
      // What was begun is given up, whether the engine answers or not; a removal is waited for.
      if (task === "over" && signal !== "SIGKILL") gate.release();
      const outcome = await running.end();
      expect(outcome.stderr).not.toMatch(/ {4}at /);
      if (signal === "SIGKILL") {
        expect(outcome.signal).toBe(signal);
        if (task === "running") await letGo(project);
        await until("the next command finds the end", async () => {
          await project.ok(["ls"]);
          return (
            task !== "running" ||
            (await project.readJson(await homeOf(project), "run.json"))["status"] !== "running"
          );
        });
      } else {
        expect(outcome.code).toBe(CODES[signal]);
      }

      expect(await leftOf(gate.made)).toEqual([]);
      const sandboxes = await project.json<{ state: string }[]>(["ls"]);
      if (task === "unborn") {
        expect(sandboxes).toEqual([]);
      } else {
        expect(sandboxes).toMatchObject([{ state: "stopped" }]);
        const status = task === "running" && signal !== "SIGKILL" ? "failed" : "completed";
        const home = await homeOf(project);
        expect(await project.readJson(home, "run.json")).toMatchObject({ status });
        expect(await project.readJson(home, "outputs/summary.json")).toMatchObject({
          status,
          outputFiles: status === "completed" ? ["big"] : [],
        });
      }
    },
  );
});

/** Lets the task come to its end. */
async function letGo(project: Project): Promise<void> {
  await project.write(`${await homeOf(project)}/work/go`, "");
}

async function homeOf(project: Project): Promise<string> {
  const [id = ""] = await readdir(project.path(".aido/sandboxes"));
  return `.aido/sandboxes/${id}`;
}

/** Those of them that the engine still has. */
async function leftOf(made: readonly string[]): Promise<readonly string[]> {
  const all = (await docker(["ps", "--all", "--quiet", "--no-trunc"])).split("\n");
  return made.filter((id) => all.includes(id));
}
