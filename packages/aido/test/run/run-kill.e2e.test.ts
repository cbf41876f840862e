import { expect, test } from "vitest";
import { until } from "../contract/driver-backend.ts";
import { Project } from "../e2e/project.ts";

test.each(["local", "docker"])(
  "S0-87 on %s kill -9 of aido: the sandbox ends at its ttl, the next look at the run says timeout and cleans up",
  async (driver) => {
    await using project = await Project.make(driver, {
      "t.sh": "trap '' TERM; echo begun; while :; do sleep 1; done\n",
      "sandbox.yaml": `name: slow\nruntime: ${driver === "docker" ? "aido-test:python" : "bash"}\nttl: 4s\n`,
    });
    const { id } = await project.json<{ id: string }>(["sandbox", "up"]);
    const home = [".aido", "sandboxes", id] as const;
    const running = project.start(["run", "t.sh"]);
    await running.until("begun");
    running.child.kill("SIGKILL");
    await running.end();
    expect(await project.readJson(...home, "run.json")).toMatchObject({ status: "running" });
    await until("the next look finds the end", async () => {
      await project.ok(["logs", id]);
      return (await project.readJson(...home, "run.json"))["status"] !== "running";
    });
    expect(await project.readJson(...home, "run.json")).toMatchObject({ status: "timeout", exitCode: 124 });
    expect(await project.readJson(...home, "outputs", "summary.json")).toMatchObject({ status: "timeout" });
    expect(await project.read(...home, "outputs", "stdout.log")).toBe("begun\n");
    const events = (await project.read(...home, "events.log")).trimEnd().split("\n");
    expect(events.map((line) => (JSON.parse(line) as { event: string }).event)).toContain("run.timeout");
    const [sandbox] = await project.json<{ state: string; containerId?: string | null }[]>(["ls"]);
    expect(sandbox?.state).toBe("stopped");
    expect(sandbox?.containerId ?? undefined).toBeUndefined();
  },
);

test("S0-92 the pipeline of the examples runs from the command line", async () => {
  await using project = await Project.make("local");
  const examples = new URL("../../../../examples/pipeline/", import.meta.url).pathname;
  await project.ok(["sandbox", "up", "--spec", `${examples}sandbox.yaml`]);
  const outcome = await project.ok(["run"]);
  expect(outcome.stdout).toBe("the columns are right\n3 items, 268.50 in all\nreport.md is written\n");
  const [sandbox] = await project.json<{ id: string }[]>(["ls"]);
  const report = await project.read(".aido", "sandboxes", sandbox?.id ?? "", "outputs", "report.md");
  expect(report).toContain("# Orders of the week");
});
