import { readlinkSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { LOCAL_MODES } from "../../../test/backends/local-backend.ts";
import { specOf } from "../../../test/contract/driver-backend.ts";
import { launch } from "../../../test/contract/launch.ts";

/** Prints, per call, `name errno` (0 when the kernel took it). */
const TRY_SYSCALLS = `
import ctypes, platform
libc = ctypes.CDLL(None, use_errno=True)
arm = platform.machine() == "aarch64"
calls = {
  "unshare": (97 if arm else 272, 0x10000000),
  "clone": (220 if arm else 56, 0x10000000 | 17, 0, 0, 0, 0),
  "clone3": (435, 0, 0),
  "mount": (40 if arm else 165, 0, 0, 0, 0, 0),
  "umount2": (39 if arm else 166, 0, 0),
  "keyctl": (219 if arm else 250, 0, -3, 0),
  "bpf": (280 if arm else 321, 0, 0, 0),
  "io_uring_setup": (425, 1, 0),
  "userfaultfd": (282 if arm else 323, 0),
  "perf_event_open": (241 if arm else 298, 0, 0, -1, -1, 0),
  "vsock": (198 if arm else 41, 40, 1, 0),
  "alg": (198 if arm else 41, 38, 5, 0),
  "inet": (198 if arm else 41, 2, 1, 0),
  "TIOCSTI": (29 if arm else 16, 0, 0x5412, 0),
}
for name, call in calls.items():
    ctypes.set_errno(0)
    result = libc.syscall(*[ctypes.c_long(part) for part in call])
    print(name, ctypes.get_errno() if result < 0 else 0)
`;

describe.each(LOCAL_MODES)("$name", ({ make }) => {
  test("the host's files outside /usr cannot be seen", async () => {
    await using backend = await make();
    const canary = join(backend.directory, "canary");
    await writeFile(canary, "secret", { mode: 0o644 });
    const { sh } = await launch(backend);
    expect((await sh(`cat ${canary}`)).exitCode).not.toBe(0);
    expect((await sh("ls /")).stdout.trim().split("\n")).toEqual(
      expect.not.arrayContaining(["home", "root", "boot", "mnt", "media", "srv", "opt", "sys"]),
    );
    expect((await sh("ls /home /root /boot /sys /var/lib /etc/shadow 2>/dev/null")).stdout).toBe("");
    expect((await sh("cat /proc/self/mounts")).stdout).not.toContain(backend.directory);
  });

  test("only the workdir and temporary directories can be written", async () => {
    await using backend = await make();
    const { sh } = await launch(backend);
    const tried = await sh(
      "for d in / /usr /usr/bin /etc /.aido /work /tmp /var/tmp /run /dev/shm; do touch $d/x 2>/dev/null && echo $d; done",
    );
    expect(tried.stdout.trim().split("\n")).toEqual(["/work", "/tmp", "/var/tmp", "/run", "/dev/shm"]);
  });

  test("system calls that reach far into the kernel are refused, ordinary ones are not", async () => {
    await using backend = await make();
    await backend.driver.ensureImage("python");
    const { client } = await launch(backend);
    const tried = await client.exec(["/usr/bin/python3", "-c", TRY_SYSCALLS]);
    expect(tried.stderr).toBe("");
    const refused = Object.fromEntries(
      tried.stdout
        .trim()
        .split("\n")
        .map((line) => line.split(" ") as [string, string]),
    );
    const [EPERM, ENOSYS, EAFNOSUPPORT] = ["1", "38", "97"];
    expect(refused).toEqual({
      unshare: EPERM,
      clone: EPERM,
      clone3: ENOSYS,
      mount: EPERM,
      umount2: EPERM,
      keyctl: EPERM,
      bpf: EPERM,
      io_uring_setup: EPERM,
      userfaultfd: EPERM,
      perf_event_open: EPERM,
      vsock: EAFNOSUPPORT,
      alg: EAFNOSUPPORT,
      inet: "0",
      TIOCSTI: EPERM,
    });
  });

  test.runIf(process.arch === "x64")("a call through another ABI ends the process", async () => {
    await using backend = await make();
    await backend.driver.ensureImage("python");
    const { client } = await launch(backend);
    const SIGSYS = 31;
    const x32 = "import ctypes; ctypes.CDLL(None).syscall(ctypes.c_long(0x40000000 + 39))";
    expect(await client.exec(["/usr/bin/python3", "-c", x32])).toMatchObject({ signal: SIGSYS });
  });

  test("a server on the host's loopback is out of reach", async () => {
    await using backend = await make();
    await backend.driver.ensureImage("python");
    const server = createServer((socket) => socket.end("reached"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const address = server.address();
    const port = typeof address === "object" ? address?.port : 0;
    const { client } = await launch(backend);
    const connect = `import socket; print(socket.socket().connect_ex(("127.0.0.1", ${port})))`;
    expect((await client.exec(["/usr/bin/python3", "-c", connect])).stdout).toBe("111\n");
  });

  test("the host's network is shared only when it is asked for", async () => {
    await using backend = await make();
    const own = await launch(backend);
    const shared = await launch(backend, { network: "host" });
    const namespace = async ({ sh }: typeof own) => (await sh("readlink /proc/self/ns/net")).stdout.trim();
    expect(await namespace(own)).not.toBe(readlinkSync("/proc/self/ns/net"));
    expect(await namespace(shared)).toBe(readlinkSync("/proc/self/ns/net"));
    expect((await own.sh("cat /etc/resolv.conf")).stdout).toBe("");
  });

  test("a terminal of its own can be opened", async () => {
    await using backend = await make();
    await backend.driver.ensureImage("python");
    const { client } = await launch(backend);
    const open = "import os; main, side = os.openpty(); print(os.ttyname(side))";
    expect((await client.exec(["/usr/bin/python3", "-c", open])).stdout).toBe("/dev/pts/0\n");
  });

  test("commands inherit no descriptor but the three they are given", async () => {
    await using backend = await make();
    const { sh } = await launch(backend);
    // The listing itself opens the directory.
    expect((await sh("exec ls /proc/self/fd")).stdout).toBe("0\n1\n2\n3\n");
  });

  test("the supervisor's memory and descriptors are closed to what it runs", async () => {
    await using backend = await make();
    const { sh } = await launch(backend);
    expect(
      (await sh("ls /proc/1/fd; cat /proc/1/maps; cat /proc/1/environ; echo > /proc/1/mem")).stdout,
    ).toBe("");
  });

  test("S0-81 privileges, other networks and nested mounts are refused before anything is made", async () => {
    await using backend = await make();
    const { driver, directory } = backend;
    await mkdir(join(directory, "inner"));
    const inner = { source: join(directory, "inner"), target: "/work/inner", readOnly: false };
    for (const changes of [{ privileged: true }, { network: "bridge" as const }, { mounts: [inner] }]) {
      await expect(driver.create(specOf(backend, changes))).rejects.toMatchObject({ code: "UNSUPPORTED" });
    }
    for (const workdir of ["/", "/usr/share/work", "work", "/work/../etc", "/proc/self"]) {
      await expect(driver.create(specOf(backend, { workdir }))).rejects.toMatchObject({
        code: "INVALID_PATH",
      });
    }
    await expect(driver.create(specOf(backend, { image: "redis:7" }))).rejects.toMatchObject({
      code: "IMAGE_NOT_FOUND",
      hint: expect.stringContaining("Docker"),
    });
    expect(await driver.list()).toEqual([]);
  });
});
