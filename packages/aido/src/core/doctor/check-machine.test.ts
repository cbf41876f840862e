import { expect, test } from "vitest";
import { checkMachine } from "./check-machine.ts";

const check = (name: string, files: Record<string, string>) =>
  checkMachine((path) => {
    const text = files[path];
    if (text === undefined) throw new Error("ENOENT");
    return text;
  }).find((finding) => finding.name === name);

test("control groups are told with their version and controllers", () => {
  const unified = { "/proc/self/mountinfo": "4 0 0:4 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw" };
  const controllers = { "/sys/fs/cgroup/cgroup.controllers": "cpu memory pids\n" };
  expect(check("cgroups", { ...unified, ...controllers })).toMatchObject({
    status: "ok",
    message: "version 2 with cpu memory pids",
  });
  expect(check("cgroups", unified)).toMatchObject({ status: "warning" });
  expect(
    check("cgroups", { "/proc/self/mountinfo": "4 0 0:4 / /c rw - cgroup cgroup rw,memory" }),
  ).toMatchObject({
    status: "ok",
    message: expect.stringContaining("version 1"),
  });
  expect(check("cgroups", {})).toMatchObject({ status: "warning" });
});

test.each([
  ["/proc/sys/user/max_user_namespaces", "0\n"],
  ["/proc/sys/kernel/unprivileged_userns_clone", "0\n"],
  ["/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n"],
])("%s at %j is a warning with what to type", (path, value) => {
  expect(check("user-ns", { [path]: value })).toMatchObject({
    status: "warning",
    hint: expect.stringContaining("sysctl -w"),
  });
});

test("a kernel that restricts nothing is fine", () => {
  expect(check("user-ns", { "/proc/sys/user/max_user_namespaces": "96349\n" })).toMatchObject({
    status: "ok",
  });
});
