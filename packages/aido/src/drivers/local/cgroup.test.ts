import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Cgroup } from "./cgroup.ts";
import { findCgroupHierarchy } from "./cgroup-hierarchy.ts";

const LIMITS = { cpus: 0.5, memoryBytes: 1024, pids: 10, diskBytes: 0, openFiles: 0, outputBytes: 0 };

test("version 1's controllers are found by their mounts, joined ones too", async () => {
  await using tree = await makeTree(["memory", "cpu,cpuacct"]);
  const mountinfo = [
    `1 0 0:1 / ${tree.path("memory")} rw - cgroup cgroup rw,memory`,
    `2 0 0:2 / ${tree.path("cpu,cpuacct")} rw - cgroup cgroup rw,cpu,cpuacct`,
    `3 0 0:3 / ${tree.path("missing")} rw - cgroup cgroup rw,pids`,
    `4 0 0:4 / ${tree.path("unified")} rw - cgroup2 cgroup2 rw`,
  ].join("\n");
  const cpu = tree.path("cpu,cpuacct");
  expect(findCgroupHierarchy({ mountinfo, own: "0::/\n" })).toEqual({
    version: 1,
    parents: { memory: tree.path("memory"), cpu, cpuacct: cpu },
  });
});

test("version 2 uses the highest group above us that is ours", async () => {
  await using tree = await makeTree(["user.slice/session"]);
  for (const directory of ["user.slice/session", "user.slice"]) {
    await writeFile(join(tree.path(directory), "cgroup.procs"), "");
  }
  await writeFile(join(tree.path("user.slice"), "cgroup.controllers"), "cpu io memory\n");
  const mountinfo = `4 0 0:4 / ${tree.path("")} rw - cgroup2 cgroup2 rw`;
  const found = findCgroupHierarchy({ mountinfo, own: "0::/user.slice/session\n" });
  const parent = tree.path("user.slice");
  expect(found).toEqual({ version: 2, parents: { memory: parent, cpu: parent, cpuacct: parent } });
});

test("version 2 hands controllers down and takes memory without swap", async () => {
  await using tree = await makeTree(["aido-scope/one"]);
  for (const file of ["memory.max", "memory.swap.max", "pids.max", "cpu.max"]) {
    await writeFile(join(tree.path("aido-scope/one"), file), "max");
  }
  const parent = tree.path("");
  const parents = { memory: parent, pids: parent, cpu: parent, cpuacct: parent };
  const cgroup = new Cgroup({ version: 2, parents }, "scope", "one");
  expect(cgroup.create(LIMITS)).toEqual([join(tree.path("aido-scope/one"), "cgroup.procs")]);
  const read = (file: string) => readFile(join(parent, file), "utf8");
  expect(await read("cgroup.subtree_control")).toBe("+memory +pids +cpu");
  expect(await read("aido-scope/cgroup.subtree_control")).toBe("+memory +pids +cpu");
  expect(await read("aido-scope/one/memory.max")).toBe("1024");
  expect(await read("aido-scope/one/memory.swap.max")).toBe("0");
  expect(await read("aido-scope/one/cpu.max")).toBe("50000 100000");
  expect(await read("aido-scope/one/pids.max")).toBe("11");

  await writeFile(join(tree.path("aido-scope/one"), "memory.events"), "low 0\noom 3\noom_kill 2\n");
  await writeFile(join(tree.path("aido-scope/one"), "cpu.stat"), "usage_usec 2500\nuser_usec 1\n");
  await writeFile(join(tree.path("aido-scope/one"), "memory.current"), "900\n");
  await writeFile(join(tree.path("aido-scope/one"), "memory.stat"), "anon 1\ninactive_file 400\n");
  await writeFile(join(tree.path("aido-scope/one"), "pids.current"), "3\n");
  expect(cgroup.oomKills()).toBe(2);
  expect(cgroup.usage()).toEqual({ cpuMs: 2.5, memoryBytes: 500, pids: 2 });
});

async function makeTree(directories: readonly string[]) {
  const root = await mkdtemp(join(tmpdir(), "aido-cgroup-test-"));
  for (const directory of directories) await mkdir(join(root, directory), { recursive: true });
  return {
    path: (directory: string) => (directory === "" ? root : join(root, directory)),
    [Symbol.asyncDispose]: async () => await rm(root, { recursive: true, force: true }),
  };
}
