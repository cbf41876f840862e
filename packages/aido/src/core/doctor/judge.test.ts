import { expect, test } from "vitest";
import { judgeDevices, judgeNetwork, judgePrivileges, judgeProcesses, judgeReach } from "./judge.ts";

const NONE = "0000000000000000";
const status = (changes: Record<string, string> = {}) =>
  Object.entries({
    Uid: "1000\t1000\t1000\t1000",
    ...{ CapInh: NONE, CapPrm: NONE, CapEff: NONE, CapBnd: NONE, CapAmb: NONE },
    ...{ NoNewPrivs: "1", Seccomp: "2" },
    ...changes,
  })
    .map(([key, value]) => `${key}:\t${value}`)
    .join("\n");
const NET_HEAD = "Inter-|   Receive\n face |bytes\n";

test("an ordinary user behind a filter has no privileges", () => {
  expect(judgePrivileges(status())).toMatchObject({ status: "ok" });
});

test.each([
  ["a capability that could be used", { CapEff: "0000000000000400" }],
  ["a capability that could be regained", { CapBnd: "00000000a80425fb" }],
  ["root", { Uid: "0\t0\t0\t0" }],
  ["a way to new privileges", { NoNewPrivs: "0" }],
])("%s is a failure", (_title, changes) => {
  expect(judgePrivileges(status(changes))).toMatchObject({ status: "failed" });
});

test("a missing filter is a warning, an unreadable status a failure", () => {
  expect(judgePrivileges(status({ Seccomp: "0" }))).toMatchObject({ status: "warning" });
  expect(judgePrivileges("")).toMatchObject({ status: "failed" });
});

test("a first process that is not the supervisor means that the host's are seen", () => {
  expect(judgeProcesses(["1", "7"], "aido-agent\n")).toMatchObject({ status: "ok" });
  expect(judgeProcesses(["1", "7", "2001"], "systemd\n")).toMatchObject({ status: "failed" });
  expect(judgeProcesses(["1"], "")).toMatchObject({ status: "failed" });
});

test("a disk or the kernel's log among the devices is a failure", () => {
  expect(judgeDevices(["null", "zero", "pts", "tty"])).toMatchObject({ status: "ok" });
  expect(judgeDevices(["null", "sda", "kmsg"])).toMatchObject({
    status: "failed",
    message: expect.stringContaining("sda, kmsg"),
  });
});

test("an interface besides loopback, or a call that arrived, is a failure", () => {
  const quiet = { reached: false, tried: true };
  expect(judgeNetwork(`${NET_HEAD}    lo: 0 0\n`, quiet)).toMatchObject({ status: "ok" });
  expect(judgeNetwork(`${NET_HEAD}    lo: 0 0\n  sit0: 0 0\n`, quiet)).toMatchObject({ status: "ok" });
  expect(judgeNetwork(`${NET_HEAD}    lo: 0 0\n  eth0: 0 0\n`, quiet)).toMatchObject({ status: "failed" });
  expect(judgeNetwork(`${NET_HEAD}    lo: 0 0\n`, { reached: true, tried: true })).toMatchObject({
    status: "failed",
  });
});

test("whatever was reached is named", () => {
  const attempts = [
    { what: "/etc/shadow", reached: true },
    { what: "/proc/kcore", reached: false },
  ];
  expect(judgeReach("files", attempts, "fine")).toMatchObject({
    status: "failed",
    message: "A sandbox reached /etc/shadow",
  });
});
