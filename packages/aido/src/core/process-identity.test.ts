import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { LinuxProcessIdentity } from "./process-identity.ts";

test("this process lives, under every name it has", () => {
  const one = new LinuxProcessIdentity("one");
  const two = new LinuxProcessIdentity("two");
  expect(one.self).not.toBe(two.self);
  expect(one.isDead(one.self)).toBe(false);
  expect(one.isDead(`${two.self}#7`)).toBe(false);
  expect(one.isAlive(`${two.self}#7`)).toBe(true);
});

test("a process is dead once it has ended, and when its number belongs to another", async () => {
  const identity = new LinuxProcessIdentity("x");
  const child = spawn("sleep", ["60"]);
  try {
    await once(child, "spawn");
    const [boot, namespace] = identity.self.split(".");
    const { readFileSync } = await import("node:fs");
    const stat = readFileSync(`/proc/${child.pid}/stat`, "utf8");
    const started = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
    const holder = `${boot}.${namespace}.${child.pid}.${started}.y`;
    expect(identity.isDead(holder)).toBe(false);
    expect(identity.isDead(`${boot}.${namespace}.${child.pid}.${Number(started) + 1}.y`)).toBe(true);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(identity.isDead(holder)).toBe(true);
  } finally {
    child.kill("SIGKILL");
  }
});

test("nothing is said of a process of another machine, or from before a reboot", () => {
  const identity = new LinuxProcessIdentity("x");
  expect(identity.isDead("other-boot.1.2.3.x")).toBe(false);
  expect(identity.isAlive("other-boot.1.2.3.x")).toBe(false);
  expect(identity.isDead("nonsense")).toBe(false);
  expect(identity.isAlive("nonsense")).toBe(false);
});
