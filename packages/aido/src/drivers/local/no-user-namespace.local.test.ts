import { mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { makeLocalBackend } from "../../../test/backends/local-backend.ts";
import { launch } from "../../../test/contract/launch.ts";
import { hostUser } from "./host-user.ts";
import { readState, writeState } from "./sandbox-state.ts";

const isRoot = process.getuid?.() === 0;
const make = () => makeLocalBackend({ userNamespaces: false });
/** CHOWN, KILL, SETGID, SETUID and SETPCAP. */
const FIVE_CAPABILITIES = "00000000000001e1";

describe.runIf(isRoot)("without a user namespace", () => {
  test("the supervisor is root with five capabilities and no way to more", async () => {
    await using backend = await make();
    const { id } = await launch(backend);
    const pid = readState(join(backend.options.root, id))?.start?.supervisor?.pid;
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    expect(status).toMatch(/^Uid:\t0\t0\t0\t0$/m);
    for (const set of ["CapPrm", "CapEff"]) expect(status).toContain(`${set}:\t${FIVE_CAPABILITIES}\n`);
    for (const set of ["CapBnd", "CapAmb"]) expect(status).toMatch(new RegExp(`^${set}:\t0+$`, "m"));
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
    expect(status).toMatch(/^Seccomp:\t2$/m);
  });

  test("commands have a user of the sandbox's own, whose name is the same as elsewhere", async () => {
    await using backend = await make();
    const one = await launch(backend);
    const other = await launch(backend);
    const uid = hostUser(join(backend.options.root, one.id));
    expect(one.container.user).toEqual({ uid, gid: uid });
    expect(other.container.user.uid).not.toBe(uid);
    expect((await one.sh("id -un; id -u; id -G; touch /work/made")).stdout).toBe(`sandbox\n${uid}\n${uid}\n`);
    expect(statSync(join(backend.options.root, one.id, "work/made")).uid).toBe(uid);
  });

  test("a command as root or as any other user of the host is refused", async () => {
    await using backend = await make();
    const { client, container } = await launch(backend);
    const own = container.user;
    for (const user of [
      { uid: 0, gid: 0 },
      { uid: 1000, gid: 1000 },
      { uid: own.uid, gid: 0 },
      { uid: 0, gid: own.gid },
    ]) {
      await expect(client.exec(["/bin/true"], { user })).rejects.toThrow();
    }
    expect(await client.exec(["/bin/true"], { user: own })).toMatchObject({ exitCode: 0 });
  });

  test("the kernel's settings cannot be changed, nor programs with another's rights be used", async () => {
    await using backend = await make();
    const { sh } = await launch(backend);
    const files =
      "/proc/sys/kernel/hostname /proc/sys/vm/drop_caches /proc/sysrq-trigger /proc/1/oom_score_adj";
    expect((await sh(`for f in ${files}; do (echo 0 > $f) 2>/dev/null && echo $f; done`)).stdout).toBe("");
    const mounts = (await sh("cat /proc/self/mounts")).stdout.trim().split("\n");
    const options = (target: string) =>
      mounts.map((line) => line.split(" ")).find((m) => m[1] === target)?.[3];
    for (const target of ["/usr", "/work", "/tmp"]) {
      expect(options(target)?.split(",")).toEqual(expect.arrayContaining(["nosuid", "nodev"]));
    }
    expect(options("/proc/sys")?.split(",")).toContain("ro");
    expect((await sh("ls /dev")).stdout.trim().split("\n")).toEqual(
      [
        "core",
        "fd",
        "full",
        "null",
        "ptmx",
        "pts",
        "random",
        "shm",
        "stderr",
        "stdin",
        "stdout",
        "tty",
      ].concat(["urandom", "zero"]),
    );
  });

  test("a mount below a directory that only root may enter is there, and theirs", async () => {
    await using backend = await make();
    const outputs = join(backend.directory, "closed", "outputs");
    mkdirSync(join(backend.directory, "closed"), { mode: 0o700 });
    mkdirSync(outputs, { mode: 0o755 });
    const { sh, container } = await launch(backend, {
      mounts: [{ source: outputs, target: "/outputs", readOnly: false }],
    });
    expect((await sh("echo yes > /outputs/made; cat /outputs/made")).stdout).toBe("yes\n");
    expect(statSync(join(outputs, "made")).uid).toBe(container.user.uid);
  });

  test("a workspace and mounts far below the root can be reached and written", async () => {
    await using backend = await make();
    const outputs = join(backend.directory, "outputs");
    mkdirSync(outputs);
    const { sh } = await launch(backend, {
      workdir: "/home/agent",
      mounts: [{ source: outputs, target: "/srv/data/outputs", readOnly: false }],
    });
    const tried =
      "cd /home/agent && touch made && touch /srv/data/outputs/made && ls /home && ls /srv/data && ! touch /home/x 2>/dev/null";
    expect(await sh(tried)).toMatchObject({ exitCode: 0, stdout: "agent\noutputs\n" });
  });

  test("a sandbox that was made with a user namespace is not started without", async () => {
    await using backend = await make();
    const { id } = await launch(backend);
    await backend.driver.stop(id, 0);
    const directory = join(backend.options.root, id);
    const state = readState(directory);
    if (state === undefined) throw new Error("there is no state");
    writeState(directory, { ...state, user: { uid: 1000, gid: 1000 } });
    await expect(backend.driver.start(id)).rejects.toMatchObject({ code: "CONTAINER_START_FAILED" });
  });

  test("the driver says so in plain words", async () => {
    await using backend = await make();
    expect((await backend.driver.capabilities()).warnings).toContain(
      "User namespaces are refused here; sandboxes run as an unprivileged user of their own instead.",
    );
  });
});
