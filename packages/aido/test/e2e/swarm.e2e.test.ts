import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import type { SwarmState } from "../../src/core/swarm/state/swarm-state.ts";
import { GitBed } from "../../src/core/swarm/testing/git-bed.ts";
import { storyJson, taskFileText } from "../../src/core/swarm/testing/task-file-text.ts";
import { docker } from "../backends/docker-cli.ts";
import { makeWorkerImage } from "../swarm/workers-bed.ts";
import { AidoProcess } from "./aido-process.ts";

/**
 * An adapter in a few lines of shell: begins its story, waits for /tmp/go, and ends as that file says. TERM has it put its work away.
 */
const SCRIPT = `
say() { printf '{"type":"%s","timestamp":"2026-01-05T00:00:00Z","swarmId":"%s","containerId":"%s","payload":%s}\\n' "$1" "$SWARM_ID" "$CONTAINER_ID" "$2"; }
trap 'say completion "{\\"status\\":\\"stopped\\",\\"prUrl\\":null,\\"errors\\":[]}"; exit 130' TERM
say progress-update '{"storyId":"US-001","status":"in_progress","output":"","changedFiles":["README.md"]}'
echo "log of $AIMI_BRANCH" >&2
while [ ! -e /tmp/go ]; do sleep 0.05; done
how=$(cat /tmp/go)
rm /tmp/go
[ "$how" = crash ] && exit 7
say progress-update '{"storyId":"US-001","status":"completed","output":"done"}'
say completion '{"status":"completed","prUrl":"https://example.com/pull/1","errors":[]}'
`;

let made: Awaited<ReturnType<typeof makeWorkerImage>>;
let bed: GitBed;
let tag: string;
let running: AidoProcess[];
beforeAll(async () => {
  made = await makeWorkerImage();
});
afterAll(async () => {
  await made?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  bed = new GitBed();
  bed.user("remote", "set-url", "origin", "https://example.com/shop.git");
  tag = `e2e-${process.pid}-${randomBytes(3).toString("hex")}`;
  running = [];
  mkdirSync(join(bed.project, ".aimi/tasks"), { recursive: true });
});
afterEach(async () => {
  for (const each of running) await each[Symbol.asyncDispose]();
  await aido("swarm", "stop", "--grace", "1s");
  await aido("swarm", "cleanup");
  const left = await docker(["ps", "-aq", "--filter", `name=aimi-swarm-${tag}`]);
  const networks = await docker(["network", "ls", "-q", "--filter", `name=aimi-swarm-${tag}`]);
  bed[Symbol.dispose]();
  expect({ left, networks }).toEqual({ left: "", networks: "" });
});

const fullName = (name: string) => `aimi-swarm-${tag}-${name}`;
const RUN = () => ["--image", made.image, "--isolation", "container", "--env", "KIND", "--env", "SCRIPT"];

function task(name: string): void {
  const metadata = { title: name, branchName: `feat/${name}` };
  const path = join(bed.project, `.aimi/tasks/${tag}-${name}-tasks.json`);
  writeFileSync(path, taskFileText([storyJson("US-001")], { metadata }));
}

function start(...argv: string[]): AidoProcess {
  const env = {
    ...bed.env,
    KIND: "script",
    SCRIPT,
    ANTHROPIC_API_KEY: "k",
    GITHUB_TOKEN: "t",
    AIDO_LOG_LEVEL: "error",
  };
  const started = new AidoProcess(argv, { cwd: bed.project, env });
  running.push(started);
  return started;
}

const aido = async (...argv: string[]) => await start(...argv).end();
const onDisk = (): SwarmState =>
  JSON.parse(readFileSync(join(bed.project, ".aimi/swarm-state.json"), "utf8"));

function statuses(): Record<string, string> {
  const prefix = `aimi-swarm-${tag}-`;
  const entries = onDisk().containers.map(({ containerName, status }) => [
    containerName.slice(prefix.length),
    status,
  ]);
  return Object.fromEntries(entries);
}

async function until(expected: Record<string, string>): Promise<void> {
  await vi.waitFor(() => expect(statuses()).toEqual(expected), { timeout: 60_000, interval: 50 });
}

async function go(name: string, how = "on"): Promise<void> {
  const leave = `echo ${how} >/tmp/g && chown 1000 /tmp/g && mv /tmp/g /tmp/go`;
  await docker(["exec", "-u", "0", fullName(name), "sh", "-c", leave]);
}

describe("a swarm of real containers", () => {
  test("S1-6 three task files, three workers at once, each to its end", async () => {
    for (const name of ["a", "b", "c"]) task(name);
    const swarm = start("--json", "swarm", "--all", ...RUN());
    await until({ a: "running", b: "running", c: "running" });
    const ids = await Promise.all(
      ["a", "b", "c"].map((name) => docker(["inspect", "-f", "{{.Id}} {{.State.Status}}", fullName(name)])),
    );
    expect(onDisk().containers.map(({ containerId }) => `${containerId} running`)).toEqual(ids);
    for (const name of ["a", "b"]) await go(name);
    await go("c", "crash");
    const { code, stdout } = await swarm.end();
    expect(code).toBe(1);
    expect(statuses()).toEqual({ a: "completed", b: "completed", c: "failed" });
    expect(onDisk().containers[0]).toMatchObject({
      prUrl: "https://example.com/pull/1",
      storyProgress: { total: 1, completed: 1 },
      acpPid: null,
    });
    const events = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(events.filter(({ type }) => type === "overlap").at(-1)).toMatchObject({
      path: "README.md",
      workers: ["a", "b", "c"].map(fullName),
    });
    expect(await docker(["inspect", "-f", "{{.State.ExitCode}}", fullName("c")])).toBe("7");
    const secrets = await docker(["inspect", fullName("a")]);
    expect(secrets).not.toContain("ANTHROPIC_API_KEY");
  });

  test("an image without an adapter is named with what to do, and `git add` of everything publishes nothing of aido's records", async () => {
    task("a");
    const { code, stdout } = await aido(
      ...["--json", "swarm", "--all", "--image", "aido-test:busybox", "--isolation", "container"],
    );
    expect(code).toBe(1);
    const reason =
      "The image aido-test:busybox has no adapter at /opt/aimi/acp-adapter, or not what runs it. `aido image build --swarm` makes one that has it";
    const events = stdout.trim().split("\n");
    expect(events.map((line) => JSON.parse(line))).toContainEqual(
      expect.objectContaining({ type: "state", state: "failed", reason }),
    );
    expect(existsSync(join(bed.project, ".aido/aido.db"))).toBe(true);
    expect(bed.user("status", "--porcelain", "--untracked-files=all")).not.toContain(".aido");
  });

  test("S1-53 S1-54 S1-55 whoever drives it is killed: status tells what became of each, resume goes on", async () => {
    for (const name of ["done", "gone", "left", "lost", "more"]) task(name);
    const swarm = start("--json", "swarm", "--all", "--max", "4", ...RUN());
    await until({ done: "running", gone: "running", left: "running", lost: "running", more: "pending" });
    const before = onDisk();
    swarm.child.kill("SIGKILL");
    await swarm.end();
    // Nobody listens: one completes, one crashes, one is removed, one goes on.
    await go("done");
    await go("gone", "crash");
    await docker(["rm", "-f", fullName("lost")]);
    const status = await aido("swarm", "status");
    expect(status.stderr).toContain("aido swarm resume");
    expect(statuses()).toEqual({
      done: "completed",
      gone: "failed",
      left: "running",
      lost: "failed",
      more: "pending",
    });
    expect(onDisk().containers[0]).toMatchObject({
      prUrl: "https://example.com/pull/1",
      storyProgress: { completed: 1 },
    });
    expect((await aido("swarm-list")).stdout).toContain(`${fullName("lost")}\tfailed`);
    const resumed = start("--json", "swarm", "resume", "--max", "4");
    await until({ done: "completed", gone: "running", left: "running", lost: "running", more: "running" });
    const idOf = (state: SwarmState, name: string) =>
      state.containers.find(({ containerName }) => containerName === fullName(name))?.containerId;
    // The one that crashed may have work that is nowhere else.
    for (const name of ["done", "gone", "left"]) expect(idOf(onDisk(), name)).toBe(idOf(before, name));
    expect(idOf(onDisk(), "lost")).not.toBe(idOf(before, "lost"));
    for (const name of ["gone", "left", "lost", "more"]) await go(name);
    expect((await resumed.end()).code).toBe(0);
    expect(new Set(Object.values(statuses()))).toEqual(new Set(["completed"]));
  });

  test("S1-56 S1-57 a paused worker is stopped; one that was started unseen runs", async () => {
    for (const name of ["a", "b"]) task(name);
    const swarm = start("swarm", "--all", ...RUN());
    await until({ a: "running", b: "running" });
    swarm.child.kill("SIGKILL");
    await swarm.end();
    const state = onDisk();
    const pending = state.containers.map((entry) =>
      entry.containerName === fullName("b") ? { ...entry, status: "pending" } : entry,
    );
    writeFileSync(
      join(bed.project, ".aimi/swarm-state.json"),
      JSON.stringify({ ...state, containers: pending }),
    );
    await docker(["pause", fullName("a")]);
    await aido("swarm-status");
    expect(statuses()).toEqual({ a: "stopped", b: "running" });
    await docker(["unpause", fullName("a")]);
  });

  test("S1-53 a worker whose container is gone has failed, also while it is pending; resume makes it another", async () => {
    for (const name of ["a", "b"]) task(name);
    const swarm = start("swarm", "--all", ...RUN());
    await until({ a: "running", b: "running" });
    swarm.child.kill("SIGKILL");
    await swarm.end();
    const state = onDisk();
    // As a host leaves it that was killed between the making of a container and the start of its adapter.
    const pending = state.containers.map((entry) => ({ ...entry, status: "pending" }));
    writeFileSync(
      join(bed.project, ".aimi/swarm-state.json"),
      JSON.stringify({ ...state, containers: pending }),
    );
    await docker(["rm", "-f", fullName("a")]);
    expect((await aido("swarm-list")).stdout.split("\n")).toEqual([
      `${fullName("a")}\tfailed`,
      `${fullName("b")}\trunning`,
      "",
    ]);
    const resumed = start("swarm", "resume");
    await until({ a: "running", b: "running" });
    const [made, kept] = onDisk().containers;
    expect(made?.containerId).not.toBe(state.containers[0]?.containerId);
    expect(kept?.containerId).toBe(state.containers[1]?.containerId);
    for (const name of ["a", "b"]) await go(name);
    expect((await resumed.end()).code).toBe(0);
    expect(statuses()).toEqual({ a: "completed", b: "completed" });
  });

  test("Ctrl-C leaves the workers at work, a second aido is refused meanwhile, stop ends them", async () => {
    task("a");
    const swarm = start("swarm", ...RUN());
    await until({ a: "running" });
    expect(await aido("swarm", ...RUN())).toMatchObject({
      code: 5,
      stderr: expect.stringContaining("--append"),
    });
    swarm.child.kill("SIGINT");
    const { code, stderr } = await swarm.end();
    expect(code).toBe(130);
    expect(stderr).toContain("aido swarm resume");
    expect(await docker(["inspect", "-f", "{{.State.Status}}", fullName("a")])).toBe("running");
    expect((await aido("swarm", "stop")).code).toBe(0);
    expect(statuses()).toEqual({ a: "stopped" });
    expect(await docker(["inspect", "-f", "{{.State.ExitCode}}", fullName("a")])).toBe("130");
  });

  test("S1-5 S1-64 logs --follow shows what a worker writes as it does, to its end, while another process drives it", async () => {
    task("a");
    const swarm = start("swarm", ...RUN());
    await until({ a: "running" });
    const logs = start("swarm", "logs", fullName("a"), "--follow");
    for (const text of ["log of feat/a", "US-001 in progress"]) await logs.until(text);
    expect(logs.stdout).not.toContain("US-001 completed");
    await go("a");
    expect((await logs.end()).code).toBe(0);
    expect(logs.stdout).toMatch(/US-001 completed[^\n]*\n.*https:\/\/example\.com\/pull\/1/s);
    expect((await swarm.end()).code).toBe(0);
    // Of what came by two streams only each one's order is known later.
    const lines = (text: string) => text.split("\n").sort();
    expect(lines((await aido("swarm", "logs", `${tag}-a`)).stdout)).toEqual(lines(logs.stdout));
  });

  test("--detach leaves the swarm to a process of its own", async () => {
    task("a");
    const { code, stdout, stderr } = await aido("swarm", "--detach", ...RUN());
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout.trim()).toBe(onDisk().swarmId);
    await until({ a: "running" });
    await go("a");
    await until({ a: "completed" });
    const { pid } = JSON.parse(readFileSync(join(bed.project, ".aimi/swarm/driver.json"), "utf8"));
    await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow(), { timeout: 30_000, interval: 50 });
  });

  test("S1-8 without Sysbox the default is refused, with what to install", async () => {
    task("a");
    const { code, stderr } = await aido("swarm", "--image", made.image);
    expect(code).toBe(9);
    expect(stderr).toMatch(/sysbox/i);
    expect(stderr).toContain("Install Sysbox");
  });
});
