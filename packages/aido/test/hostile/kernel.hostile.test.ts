import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DRIVERS, Range } from "./range.ts";
import { FORBIDDEN_CALLS, LOCAL_FORBIDDEN_CALLS, perlOfCalls } from "./syscalls.ts";

/**
 * Writes into the kernel's own files and prints those that took it. What belongs to a namespace of the sandbox's own may take
 * it: the canaries then tell whether the host's value changed.
 */
const WRITE_SETTINGS = `
import os, re
namespaced = re.compile("^/proc/sys/(fs/mqueue/|kernel/(auto_msgmni|msg|sem|shm|ns_last_pid|pid_max))")
def attempt(path):
    try: fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError: return
    try: os.write(fd, b"4242")
    except OSError: return
    finally: os.close(fd)
    if not namespaced.match(path): print("WROTE", path)
for path in ("/proc/sysrq-trigger", "/proc/kcore", "/proc/kmsg", "/dev/kmsg", "/dev/mem", "/dev/port", "/dev/kvm",
             "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/fs/binfmt_misc/register",
             "/sys/kernel/uevent_helper", "/proc/scsi/scsi", "/proc/1/mem", "/proc/1/attr/current", "/proc/1/attr/exec",
             "/proc/1/uid_map", "/proc/1/gid_map", "/proc/1/projid_map", "/proc/1/setgroups", "/proc/1/comm"):
    attempt(path)
seen = 0
for top in ("/proc/sys", "/proc/irq", "/sys/fs/cgroup", "/sys/kernel", "/sys/power", "/sys/firmware", "/sys/class", "/sys/module/kernel"):
    for folder, folders, files in os.walk(top):
        for name in files:
            seen += 1
            if seen < 20000: attempt(os.path.join(folder, name))
        folders[:] = [name for name in folders if not os.path.islink(os.path.join(folder, name))]
        try: os.mkdir(os.path.join(folder, "aido-escape"))
        except OSError: continue
        print("MADE", folder)
print("done")
`;
const OPEN_DEVICES = `
import os, stat
harmless = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "console"}
for folder, folders, files in os.walk("/dev"):
    for name in files:
        path = os.path.join(folder, name)
        try: mode = os.lstat(path).st_mode
        except OSError: continue
        if not (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)): continue
        if name in harmless or folder.startswith("/dev/pts"): continue
        try: os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        except OSError: continue
        print("OPENED", path)
for number, kind in ((os.makedev(1, 1), stat.S_IFCHR), (os.makedev(8, 0), stat.S_IFBLK), (os.makedev(5, 1), stat.S_IFCHR)):
    for folder in ("/tmp", "/dev/shm", "."):
        try: os.mknod(os.path.join(folder, "device"), kind | 0o666, number)
        except OSError: continue
        print("MADE", folder)
print("done")
`;
const NAMESPACES = `
import os
for pid in ("1", str(os.getppid())):
    for name in ("mnt", "net", "pid", "user", "ipc", "uts", "cgroup"):
        try: fd = os.open("/proc/%s/ns/%s" % (pid, name), os.O_RDONLY)
        except OSError: continue
        print("OPENED", pid, name)
print("done")
`;
const COPY_SETUID =
  "cd /tmp && cp /usr/bin/id set-id && cp /usr/bin/perl set-perl && chmod 6755 set-id set-perl && stat -c %a set-id";
const RUN_SETUID = `/tmp/set-id -u; /tmp/set-id -g; /tmp/set-perl -e 'print "$< $> ", $( + 0, " ", $) + 0'`;

for (const driver of DRIVERS) {
  describe(`attacks on the kernel from ${driver}`, () => {
    let range: Range;
    beforeAll(async () => {
      range = await Range.open(driver);
    });
    afterAll(async () => {
      await range[Symbol.asyncDispose]();
    });
    // Root without any capability, where a sandbox may have users.
    const users = driver === "docker" ? [undefined, "0"] : [undefined];

    test.each(users)("S3-70 no system call leads out, user %s", async (user) => {
      await using target = await range.sandbox();
      const calls = driver === "local" ? LOCAL_FORBIDDEN_CALLS : FORBIDDEN_CALLS;
      const argv = ["perl", "-e", perlOfCalls(calls)];
      const { stdout, stderr } = await target.attack("", { argv, user });
      const errors = new Map(
        stdout
          .trim()
          .split("\n")
          .map((line) => [line.replace(/ \d+$/, ""), Number(/\d+$/.exec(line)?.[0])] as const),
      );
      expect(stderr).toBe("");
      expect([...errors.keys()]).toEqual([...Object.keys(calls), "done"]);
      expect([...errors].filter(([, error]) => error === 0)).toEqual([]);
      await target.answers();
    });

    test.each(users)(
      "no setting of the kernel can be written and no control group made, user %s",
      async (user) => {
        await using target = await range.sandbox();
        expect((await target.attack(WRITE_SETTINGS, { user })).stdout).toBe("done\n");
        await target.answers();
      },
    );

    test.each(users)("no device of the host can be opened or made, user %s", async (user) => {
      await using target = await range.sandbox();
      expect((await target.attack(OPEN_DEVICES, { user })).stdout).toBe("done\n");
    });

    test.each(users)("the supervisor's namespaces are closed, user %s", async (user) => {
      await using target = await range.sandbox();
      expect((await target.attack(NAMESPACES, { user })).stdout).toBe("done\n");
    });

    test("a set-id program gives nobody another user", async () => {
      await using target = await range.sandbox();
      const user = driver === "docker" ? "0" : undefined;
      const copied = await target.attack("", { argv: ["sh", "-c", COPY_SETUID], user });
      expect(copied).toMatchObject({ stdout: "6755\n", stderr: "" });
      const uid = (await target.attack("", { argv: ["id", "-u"] })).stdout.trim();
      expect(Number(uid)).toBeGreaterThanOrEqual(1000);
      const { stdout } = await target.attack("", { argv: ["sh", "-c", RUN_SETUID] });
      expect(stdout).toBe(`${uid}\n${uid}\n${uid} ${uid} ${uid} ${uid}`);
    });

    test("a crash writes no file and runs no program of the host", async () => {
      await using target = await range.sandbox();
      const { info } = await target.attack("import os; os.abort()");
      expect(info).toMatchObject({ status: "killed", signal: "SIGABRT" });
      expect((await target.attack("import os; print(os.listdir('.'))")).stdout).toBe("[]\n");
    });
  });
}
