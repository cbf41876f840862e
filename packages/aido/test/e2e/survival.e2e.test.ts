import { readdirSync, readlinkSync } from "node:fs";
import { rm } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import Database from "libsql";
import { expect, test } from "vitest";
import { Project } from "./project.ts";

const LONG = { "t.sh": "echo begun; sleep 300; echo never\n" };

test.each([
  ["local", "SIGINT", 130],
  ["local", "SIGTERM", 143],
  ["docker", "SIGINT", 130],
] as const)("on %s %s ends the run in order: recorded, cleaned, exit %i", async (driver, signal, code) => {
  await using project = await Project.make(driver, LONG);
  const image = driver === "docker" ? ["--image", "aido-test:python"] : [];
  await using running = project.start(["run", "t.sh", ...image]);
  await running.until("begun");
  running.child.kill(signal);
  expect(await running.end()).toMatchObject({ code, stdout: "begun\n" });
  const [sandbox] = await project.json<{ id: string; state: string }[]>(["ls"]);
  expect(sandbox?.state).not.toBe("running");
  const home = [".aido", "sandboxes", sandbox?.id ?? ""];
  expect(await project.readJson(...home, "run.json")).toMatchObject({ status: "failed" });
  expect(await project.readJson(...home, "outputs", "summary.json")).toMatchObject({ status: "failed" });
});

test("SIGTERM ends the run though nobody reads its output any more", async () => {
  await using project = await Project.make("local", { "t.sh": "yes" });
  const { id } = await project.json<{ id: string }>(["sandbox", "up", "--template", "bash"]);
  await using running = project.start(["run", "t.sh"]);
  await running.until("y");
  running.child.stdout.pause();
  const log = [".aido", "sandboxes", id, "run.json"];
  await expect.poll(async () => (await project.readJson(...log))["status"]).toBe("running");
  running.child.kill("SIGTERM");
  await expect
    .poll(async () => (await project.readJson(...log))["status"], { timeout: 20_000 })
    .toBe("failed");
  await expect
    .poll(() => running.child.exitCode ?? running.child.signalCode, { timeout: 20_000 })
    .not.toBeNull();
  expect(running.child.signalCode === "SIGTERM" || running.child.exitCode === 143).toBe(true);
  running.child.stdout.resume();
});

test("a second SIGINT quits at once", async () => {
  await using project = await Project.make("local", {
    "t.sh": "trap '' INT TERM; echo begun; while :; do sleep 1; done",
  });
  await using running = project.start(["run", "t.sh"]);
  await running.until("begun");
  running.child.kill("SIGINT");
  running.child.kill("SIGINT");
  const { code, signal } = await running.end();
  expect(signal === "SIGINT" || code === 130).toBe(true);
});

test("after kill -9 of aido the run goes on, is followed by the next command and ends in order", async () => {
  await using project = await Project.make("local", {
    "t.sh": "echo begun; while [ ! -e /work/go ]; do sleep 0.1; done; echo done; exit 3\n",
  });
  const { id } = await project.json<{ id: string }>(["sandbox", "up", "--template", "bash"]);
  const running = project.start(["run", "t.sh"]);
  await running.until("begun");
  running.child.kill("SIGKILL");
  await running.end();
  expect((await project.ok(["logs"])).stdout).toBe("begun\n");
  await using following = project.start(["logs", "--follow"]);
  await following.until("begun");
  await project.write(`.aido/sandboxes/${id}/work/go`, "");
  expect(await following.end()).toMatchObject({ code: 0, stdout: "begun\ndone\n" });
  await expect
    .poll(async () => (await project.readJson(".aido", "sandboxes", id, "run.json"))["status"], {
      timeout: 20_000,
    })
    .toBe("failed");
});

test("after kill -9 the next command can destroy everything", async () => {
  await using project = await Project.make("local", LONG);
  const running = project.start(["run", "t.sh"]);
  await running.until("begun");
  running.child.kill("SIGKILL");
  await running.end();
  await project.ok(["sandbox", "destroy", "--all"]);
  expect(await project.json(["ls"])).toEqual([]);
});

/** Processes that hold a file of a try open, as everything that is started in one holds its log. */
function triesAtWork(directory: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return readdirSync(`/proc/${pid}/fd`).some((fd) => {
        const path = readlinkSync(`/proc/${pid}/fd/${fd}`);
        return path.startsWith(directory) && path.includes("/.try-");
      });
    } catch {
      return false; // no process, or it ended
    }
  });
}

test("kill -9 while aido tries what the machine can do leaves no process behind", async () => {
  await using project = await Project.make();
  const hasBegun = () => {
    try {
      return readdirSync(project.directory, { recursive: true }).some((name) => `${name}`.includes(".try-"));
    } catch {
      return false; // What was listed got another name before it was looked into.
    }
  };
  for (let round = 0; round < 12; round += 1) {
    await using running = project.start(["create", "--image", "host"]);
    while (!hasBegun() && running.child.exitCode === null) await new Promise(setImmediate);
    // Each round a little later: every step of the try is hit by one of them.
    await setTimeout(round);
    running.child.kill("SIGKILL");
    await running.end();
    await expect.poll(() => triesAtWork(project.directory), { timeout: 10_000 }).toEqual([]);
    // On a busy machine the kill comes late, and finds a whole sandbox: one that rightly outlives its maker.
    await project.ok(["sandbox", "destroy", "--all"]);
    await rm(project.path(".aido"), { recursive: true, force: true });
  }
});

test("two command lines at once on one data directory do not disturb each other", async () => {
  await using project = await Project.make();
  const ids = await Promise.all([project.create("--name", "one"), project.create("--name", "two")]);
  const [one, two, list] = await Promise.all([
    project.aido(["exec", "one", "sh", "-c", "for i in 1 2 3; do echo one; sleep 0.1; done"]),
    project.aido(["exec", "two", "sh", "-c", "for i in 1 2 3; do echo two; sleep 0.1; done"]),
    project.json<unknown[]>(["ls"]),
  ]);
  expect(one).toMatchObject({ code: 0, stdout: "one\none\none\n" });
  expect(two).toMatchObject({ code: 0, stdout: "two\ntwo\ntwo\n" });
  expect(list).toHaveLength(2);
  const names = await Promise.all([
    project.aido(["create", "--image", "host", "--name", "same"]),
    project.aido(["create", "--image", "host", "--name", "same"]),
  ]);
  expect(names.map(({ code }) => code).sort()).toEqual([0, 5]);
  expect(new Set(ids).size).toBe(2);
});

test("a data directory that cannot be written is one sentence and exit 2", async () => {
  await using project = await Project.make("local", { file: "x" });
  // Root may write anywhere, so a directory below a file stands for one that nobody can make.
  const outcome = await project.aido(["--data-dir", "file/data", "ls"]);
  expect(outcome).toMatchObject({ code: 2, stdout: "" });
  expect(outcome.stderr).toContain("file/data");
});

test("a database of a newer aido is refused and left as it is", async () => {
  await using project = await Project.make();
  await project.ok(["ls"]);
  const file = project.path(".aido", "aido.db");
  change(file, "INSERT INTO migrations (version, applied_at) VALUES (999, 0)");
  const outcome = await project.aido(["ls"]);
  change(file, "DELETE FROM migrations WHERE version = 999");
  expect(outcome).toMatchObject({ code: 9, stdout: "" });
  expect(outcome.stderr).toMatch(/newer version of aido.*Update aido/s);
  expect((await project.aido(["ls"])).code).toBe(0);
});

function change(file: string, sql: string): void {
  const database = new Database(file);
  try {
    database.exec(sql);
  } finally {
    database.close();
  }
}
