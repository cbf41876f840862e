import Database from "libsql";
import { expect, test } from "vitest";
import { Project } from "./project.ts";

interface Info {
  id: string;
  state: string;
  limits: Record<string, number>;
  labels: Record<string, string>;
}

test.each(["local", "docker"])(
  "on %s a sandbox stops and starts with its files, and is gone after rm",
  async (driver) => {
    await using project = await Project.make(driver);
    const id = await project.create("--name", "web");
    await project.ok(["exec", "web", "sh", "-c", "echo kept > file"]);
    expect((await project.ok(["stop", "web"])).stdout).toBe(`Stopped ${id}\n`);
    expect(await project.aido(["exec", "web", "true"])).toMatchObject({
      code: 125,
      stderr: expect.stringContaining("sandbox start"),
    });
    expect(await project.json<Info>(["inspect", "web"])).toMatchObject({ state: "stopped" });
    await project.ok(["start", "web"]);
    expect((await project.ok(["exec", "web", "cat", "file"])).stdout).toBe("kept\n");
    expect((await project.ok(["rm", "web"])).stdout).toBe(`Destroyed ${id}\n`);
    expect(await project.aido(["inspect", id])).toMatchObject({ code: 4 });
  },
);

test("create's options are what inspect shows", async () => {
  await using project = await Project.make();
  const id = await project.create("--memory", "256m", "--cpus", "0.5", "--pids", "50", "--label", "team=a");
  const info = await project.json<Info>(["inspect", id]);
  expect(info).toMatchObject({ id, state: "running", network: "none", labels: { team: "a" } });
  expect(info.limits).toMatchObject({ memoryBytes: 256 << 20, cpus: 0.5, pids: 50 });
  const text = (await project.ok(["inspect", id])).stdout;
  expect(text).toContain("256 MiB");
});

test("ls shows what is there, newest first, and filters by label", async () => {
  await using project = await Project.make();
  const first = await project.create("--label", "team=a");
  const second = await project.create();
  expect((await project.ok(["ls", "--quiet"])).stdout).toBe(`${second}\n${first}\n`);
  expect((await project.ok(["ls", "-q", "--label", "team=a"])).stdout).toBe(`${first}\n`);
  expect((await project.ok(["ls"])).stdout.split("\n")).toHaveLength(4);
});

test("stats shows use, once and again and again", async () => {
  await using project = await Project.make();
  const id = await project.create();
  expect(await project.json(["stats", id])).toMatchObject([{ sandboxId: id, pids: expect.any(Number) }]);
  expect((await project.ok(["stats"])).stdout).toContain(id);
  await using watching = project.start(["stats", "--watch", "--interval", "100ms", "--json"]);
  await watching.until("cpuPercent");
  watching.child.kill("SIGINT");
  const { code, stdout } = await watching.end();
  expect(code).toBe(0);
  for (const line of stdout.trimEnd().split("\n")) expect(JSON.parse(line)).toMatchObject({ sandboxId: id });
});

test("a sandbox ends when its ttl is over, and ttl gives it more time", async () => {
  await using project = await Project.make();
  const short = await project.create("--ttl", "1s");
  const long = await project.create("--ttl", "2s");
  await project.ok(["ttl", long, "1h"]);
  await expect
    .poll(async () => (await project.aido(["exec", short, "true"])).code, { timeout: 20_000, interval: 200 })
    .toBe(125);
  expect((await project.json<Info>(["inspect", long])).state).toBe("running");
});

test("a name that is taken or not allowed is refused with what to do", async () => {
  await using project = await Project.make();
  await project.create("--name", "web");
  expect(await project.aido(["create", "--image", "host", "--name", "web"])).toMatchObject({ code: 5 });
  for (const name of ["", "a b", "../x", "-x", "x\u001b[2J", "x".repeat(300)]) {
    const outcome = await project.aido(["create", "--image", "host", `--name=${name}`]);
    expect(outcome.code).toBe(2);
    expect(outcome.stderr).not.toContain("\u001b");
  }
});

test("an unknown or ambiguous sandbox is refused and the next step is named", async () => {
  await using project = await Project.make();
  expect(await project.aido(["inspect", "nothere1"])).toMatchObject({
    code: 4,
    stderr: expect.stringContaining("aido sandbox list"),
  });
  const first = (await project.json<Info>(["sandbox", "up", "--template", "bash"])).id;
  const second = (await project.json<Info>(["sandbox", "up", "--template", "bash"])).id;
  const twin = `${first.slice(0, 4)}zzzz`;
  rename(project, second, twin);
  const outcome = await project.aido(["inspect", first.slice(0, 4)]);
  const json = await project.aido(["rm", first.slice(0, 2), "--json"]);
  rename(project, twin, second);
  expect(outcome).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(first) });
  expect(JSON.parse(json.stdout)).toMatchObject({ error: { code: "CONTAINER_AMBIGUOUS" } });
  expect(await project.json<Info>(["inspect", first.slice(0, 4)])).toMatchObject({ id: first });
});

test("a destroyed sandbox is listed only with --all", async () => {
  await using project = await Project.make();
  const { id } = await project.json<Info>(["sandbox", "up", "--template", "bash"]);
  await project.ok(["rm", id]);
  expect(await project.json(["ls"])).toEqual([]);
  expect(await project.json<Info[]>(["ls", "--all"])).toMatchObject([{ id, state: "deleted" }]);
});

/** Ids are random, so that two begin alike is arranged where they are kept. */
function rename(project: Project, from: string, to: string): void {
  const database = new Database(project.path(".aido", "aido.db"));
  try {
    database.exec("PRAGMA foreign_keys = OFF");
    database.prepare("UPDATE sandboxes SET id = ? WHERE id = ?").run(to, from);
  } finally {
    database.close();
  }
}
