import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readCgroupUsage, toCgroupPaths } from "./cgroup-usage.ts";

let root: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "aido-cgroup-"));
});

afterEach(async () => {
  await rm(root, { recursive: true });
});

async function put(path: string, text: string): Promise<void> {
  await mkdir(join(root, path, ".."), { recursive: true });
  await writeFile(join(root, path), text);
}

test("version 1 is read from a tree per controller, whatever each is called", async () => {
  const paths = toCgroupPaths(
    "12:cpu,cpuacct:/docker/abc\n11:memory:/docker/abc\n3:pids:/other/abc\n0::/unified\n",
    root,
  );
  await put("cpuacct/docker/abc/cpuacct.usage", "2500000\n");
  await put("memory/docker/abc/memory.usage_in_bytes", "5000\n");
  await put("memory/docker/abc/memory.stat", "cache 9\ntotal_inactive_file 1500\n");
  await put("pids/other/abc/pids.current", "3\n");
  expect(paths).toBeDefined();
  if (paths === undefined) return;
  expect(await readCgroupUsage(paths)).toEqual({
    cpuMs: 3,
    memoryBytes: 3500,
    pids: 3,
  });
});

test("version 2 is read from one tree", async () => {
  const paths = toCgroupPaths("0::/system.slice/docker-abc.scope\n", root);
  await put("system.slice/docker-abc.scope/cpu.stat", "usage_usec 7000\nuser_usec 1\n");
  await put("system.slice/docker-abc.scope/memory.current", "5000\n");
  await put("system.slice/docker-abc.scope/memory.stat", "anon 1\ninactive_file 9000\n");
  await put("system.slice/docker-abc.scope/pids.current", "2\n");
  expect(paths).toBeDefined();
  if (paths === undefined) return;
  expect(await readCgroupUsage(paths)).toEqual({ cpuMs: 7, memoryBytes: 0, pids: 2 });
});

test("a group that is gone is an error, and the root group is no container", async () => {
  const paths = toCgroupPaths("0::/gone\n", root);
  expect(paths).toBeDefined();
  if (paths !== undefined) await expect(readCgroupUsage(paths)).rejects.toMatchObject({ code: "ENOENT" });
  expect(toCgroupPaths("0::/\n", root)).toBeUndefined();
  expect(toCgroupPaths("", root)).toBeUndefined();
});
