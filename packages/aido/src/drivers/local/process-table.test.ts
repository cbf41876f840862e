import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { identify, isAlive, parseStat } from "./process-table.ts";

test("a process's name may hold spaces and brackets", () => {
  const fields = [
    "S",
    "7",
    ...new Array(9).fill("0"),
    "11",
    "12",
    "13",
    "14",
    "20",
    "0",
    "1",
    "0",
    "4711",
    "0",
  ];
  const stat = parseStat(`42 (a) S (b c) ${fields.join(" ")}\n`);
  expect(stat).toMatchObject({
    state: "S",
    parent: 7,
    userTicks: 11,
    systemTicks: 12,
    childTicks: 27,
    startTicks: 4711,
  });
});

test("a process is alive until it ends, and never under another start time or boot", async () => {
  const child = spawn("/bin/sleep", ["60"], { stdio: "ignore" });
  const ended = once(child, "exit");
  try {
    const identity = identify(child.pid ?? 0);
    if (identity === undefined) throw new Error("the child is not there");
    expect(isAlive(identity)).toBe(true);
    expect(isAlive({ ...identity, startTicks: identity.startTicks + 1 })).toBe(false);
    expect(isAlive({ ...identity, bootId: "another" })).toBe(false);
    child.kill("SIGKILL");
    await ended;
    expect(isAlive(identity)).toBe(false);
  } finally {
    child.kill("SIGKILL");
  }
});
