import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { chmod, chown, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { IS_SANITIZED } from "../../../test/backends/agent-path.ts";
import { hasUserNamespaces, LOCAL_MODES } from "../../../test/backends/local-backend.ts";
import { type DriverBackend, specOf, until } from "../../../test/contract/driver-backend.ts";
import { launch } from "../../../test/contract/launch.ts";
import { SupervisorClient } from "../../../test/contract/supervisor-client.ts";
import { userProcesses } from "../../../test/local/user-processes.ts";
import { hostUser } from "./host-user.ts";
import { LocalDriver } from "./local-driver.ts";
import { isAlive } from "./process-table.ts";
import { readState, type SandboxState, writeState } from "./sandbox-state.ts";

const isRoot = process.getuid?.() === 0;
const STARTER = fileURLToPath(new URL("../../../test/local/start-sandbox.mjs", import.meta.url));

describe.each(LOCAL_MODES)("$name", ({ make }) => {
  test("a sandbox outlives the kill -9 of the process that started it, and the next one goes on with it", async () => {
    await using backend = await make();
    const spec = specOf(backend);
    const starter = spawn(
      process.execPath,
      [STARTER, JSON.stringify(backend.options), JSON.stringify(spec)],
      {
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    onTestFinished(() => void starter.kill("SIGKILL"));
    const ended = once(starter, "exit");
    const first = await Promise.race([once(starter.stdout, "data"), ended]);
    expect(String(first[0])).toBe("started\n");
    starter.kill("SIGKILL");
    await ended;

    expect(await backend.driver.list()).toMatchObject([{ sandboxId: spec.sandboxId, state: "running" }]);
    await using client = await SupervisorClient.open(
      backend.driver,
      spec.sandboxId,
      SupervisorClient.newToken(),
    );
    const user = (await backend.driver.list())[0]?.user ?? { uid: 0, gid: 0 };
    await client.configure({ user, workdir: "/work", deadlineMs: 3000 });
    expect(await client.exec(["/bin/sh", "-c", "echo hello"])).toMatchObject({ stdout: "hello\n" });
    await until("it has ended", async () => (await backend.driver.list())[0]?.state === "exited");
    expect(await (await backend.reopen()).inspect(spec.sandboxId)).toMatchObject({ exitCode: 124 });
  });

  test("a start that was recorded only in part is found and completed", async () => {
    await using backend = await make();
    const { id } = await launch(backend);
    const directory = join(backend.options.root, id);
    const before = stateOf(directory);
    writeState(directory, { ...before, start: { ...started(before), supervisor: undefined } });
    expect(await backend.driver.inspect(id)).toMatchObject({ state: "running" });
    await backend.driver.start(id);
    expect(stateOf(directory).start?.supervisor).toEqual(before.start?.supervisor);
  });

  test("a start that nobody recorded does not live on beside the next one", async ({ skip }) => {
    skip(!isRoot, "processes are found by control group or by the sandbox's own user");
    await using backend = await make();
    const { id } = await launch(backend);
    const directory = join(backend.options.root, id);
    const forgotten = started(stateOf(directory)).supervisor;
    writeState(directory, { ...stateOf(directory), start: undefined });
    await backend.driver.start(id);
    expect(forgotten && isAlive(forgotten)).toBe(false);
    expect(await backend.driver.inspect(id)).toMatchObject({ state: "running" });
  });

  test("a process that got the supervisor's number later is not taken for it, nor killed", async () => {
    await using backend = await make();
    const { id, client } = await launch(backend);
    const directory = join(backend.options.root, id);
    const state = stateOf(directory);
    const supervisor = started(state).supervisor;
    if (supervisor === undefined) throw new Error("no supervisor was recorded");
    const later = { ...supervisor, startTicks: supervisor.startTicks - 1 };
    writeState(directory, { ...state, start: { ...started(state), supervisor: later, monitor: undefined } });
    expect(await backend.driver.inspect(id)).toMatchObject({ state: "exited", exitCode: undefined });
    await expect(backend.driver.usage(id)).rejects.toMatchObject({ code: "CONTAINER_NOT_RUNNING" });
    expect(await client.ping(1)).toBe(1);
    writeState(directory, state);
    expect(await backend.driver.inspect(id)).toMatchObject({ state: "running" });
  });

  test("two drivers that start one sandbox at once start it once", async () => {
    await using backend = await make();
    const spec = specOf(backend);
    await backend.driver.create(spec);
    const other = await backend.reopen();
    await Promise.all([backend.driver.start(spec.sandboxId), other.start(spec.sandboxId)]);
    const supervisor = started(stateOf(join(backend.options.root, spec.sandboxId))).supervisor;
    expect(supervisor && isAlive(supervisor)).toBe(true);
    expect((await other.usage(spec.sandboxId)).pids).toBe(1);
    // bubblewrap outside and the supervisor inside; without a user namespace both are root
    if (isRoot && (await hasUserNamespaces(backend)))
      expect(userProcesses(uidOf(backend, spec.sandboxId))).toHaveLength(2);
  });

  test("a user without privileges has sandboxes too, with bounded processes", async ({ skip }) => {
    skip(!isRoot, "the other tests show it");
    skip(IS_SANITIZED, "without control groups data is limited, and sanitizers need more");
    await using backend = await make();
    skip(!(await hasUserNamespaces(backend)), "only root has sandboxes without user namespaces");
    const uid = 54_321;
    const isOpen = spawnSync("test", ["-r", STARTER], { uid, gid: uid }).status === 0;
    skip(!isOpen, "this clone lies where other users may not read");
    const root = join(backend.directory, "theirs");
    await mkdir(root);
    await chown(root, uid, uid);
    await chmod(backend.directory, 0o755);
    const mine = specOf(backend);
    const spec = { ...mine, limits: { ...mine.limits, pids: 33 } };
    const options = { ...backend.options, root };
    const starter = spawn(process.execPath, [STARTER, JSON.stringify(options), JSON.stringify(spec)], {
      ...{ uid, gid: uid, cwd: "/", stdio: ["ignore", "pipe", "inherit"] },
    });
    onTestFinished(() => void starter.kill("SIGKILL"));
    expect(
      String((await Promise.race([once(starter.stdout ?? starter, "data"), once(starter, "exit")]))[0]),
    ).toBe("started\n");
    const driver = new LocalDriver(options);
    try {
      await using client = await SupervisorClient.open(driver, spec.sandboxId, SupervisorClient.newToken());
      await client.configure({ user: { uid: 1000, gid: 1000 }, workdir: "/work" });
      const { stdout } = await client.exec([
        "/bin/bash",
        "-c",
        "id -u; ulimit -u; touch /work/x && echo written",
      ]);
      expect(stdout).toBe("1000\n33\nwritten\n");
      expect(userProcesses(uid).length).toBeGreaterThanOrEqual(2);
    } finally {
      await driver.remove(spec.sandboxId);
    }
  });

  test("nothing is left of a removed sandbox: no process, control group or file", async () => {
    await using backend = await make();
    const { id, client } = await launch(backend);
    client.start(["/bin/sh", "-c", "trap '' TERM; setsid sleep 300 & sleep 300"]);
    await until("it runs", async () => (await backend.driver.usage(id)).pids >= 4);
    await backend.driver.remove(id);
    expect(existsSync(join(backend.options.root, id))).toBe(false);
    expect(cgroupsOf(backend.options.scope)).toEqual([]);
    if (isRoot) expect(userProcesses(uidOf(backend, id))).toEqual([]);
  });

  test("a sandbox killed from outside is told as killed", async () => {
    await using backend = await make();
    const { id } = await launch(backend);
    const supervisor = started(stateOf(join(backend.options.root, id))).supervisor;
    process.kill(supervisor?.pid ?? 0, "SIGKILL");
    await until("its end is known", async () => (await backend.driver.inspect(id))?.exitCode !== undefined);
    expect(await backend.driver.inspect(id)).toMatchObject({ state: "exited", exitCode: 137 });
  });

  test("what is written to the workdir survives stop and start", async () => {
    await using backend = await make();
    const { id, sh, container } = await launch(backend);
    await sh("echo kept > /work/file");
    await backend.driver.stop(id, 2_000);
    await backend.driver.start(id);
    await using client = await SupervisorClient.open(backend.driver, id, SupervisorClient.newToken());
    await client.configure({ user: container.user, workdir: "/work" });
    expect(await client.exec(["/bin/cat", "/work/file"])).toMatchObject({ stdout: "kept\n" });
  });

  test("a umask that shuts everyone out does not shut the sandbox out", async () => {
    await using backend = await make();
    const before = process.umask(0o077);
    onTestFinished(() => void process.umask(before));
    const { sh } = await launch(backend);
    expect((await sh("id -un; cat /etc/hostname >/dev/null && touch /work/x && echo fine")).stdout).toBe(
      "sandbox\nfine\n",
    );
  });

  test("a tree that is deeper than any path can be removed with its sandbox", async () => {
    await using backend = await make();
    const { id, sh } = await launch(backend);
    const name = "d".repeat(200);
    const dug = await sh(
      `i=0; while [ $i -lt 60 ]; do mkdir ${name} && cd -P ${name} || exit 1; i=$((i+1)); done; chmod 0 .`,
    );
    expect(dug.exitCode).toBe(0);
    await backend.driver.remove(id);
    expect(existsSync(join(backend.options.root, id))).toBe(false);
  });

  test("without bubblewrap the message says what to type", async () => {
    await using backend = await make();
    const driver = new LocalDriver({ ...backend.options, searchPath: backend.directory });
    await expect(driver.capabilities()).rejects.toMatchObject({
      code: "RUNTIME_UNAVAILABLE",
      hint: expect.stringContaining("apt-get install bubblewrap"),
    });
  });
});

function stateOf(directory: string): SandboxState {
  const state = readState(directory);
  if (state === undefined) throw new Error(`${directory} has no state`);
  return state;
}

function started(state: SandboxState): NonNullable<SandboxState["start"]> {
  if (state.start === undefined) throw new Error(`${state.sandboxId} was never started`);
  return state.start;
}

function uidOf(backend: DriverBackend & { options: { root: string } }, id: string): number {
  return hostUser(join(backend.options.root, id));
}

function cgroupsOf(scope: string): string[] {
  const mounts = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => / - cgroup2? /.test(line))
    .map((line) => line.split(" ")[4] ?? "");
  return mounts.flatMap((mount) => readdirSync(mount).filter((name) => name === `aido-${scope}`));
}
