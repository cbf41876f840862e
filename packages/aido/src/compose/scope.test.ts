import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
} from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { bundle } from "../../test/processes/bundle.ts";
import { beginScope, scopeOf } from "./scope.ts";

const machine = vi.hoisted(() => ({ name: undefined as string | undefined }));
vi.mock("node:os", async (original) => {
  const os = await original<typeof import("node:os")>();
  return { ...os, hostname: () => machine.name ?? os.hostname() };
});
vi.mock("node:fs", async (original) => {
  const fs = await original<typeof import("node:fs")>();
  const readFileSync = (file: string, ...rest: []) =>
    file === "/etc/machine-id" && machine.name !== undefined ? machine.name : fs.readFileSync(file, ...rest);
  return { ...fs, readFileSync };
});

/** As on a machine, or in a container, of another name and id. */
function elsewhere<T>(look: () => T): T {
  machine.name = "another-machine";
  try {
    return look();
  } finally {
    machine.name = undefined;
  }
}

let root = "";
let place = "";
beforeEach(() => {
  place = mkdtempSync(join(realpathSync(tmpdir()), "aido-scope-"));
  root = join(place, "data");
  mkdirSync(root);
});
afterEach(() => rmSync(place, { recursive: true, force: true }));

/** What it was before it was kept in the directory. */
function former(directory: string): string {
  const machine = existsSync("/etc/machine-id") ? readFileSync("/etc/machine-id", "utf8").trim() : "";
  return createHash("sha256")
    .update(`${machine || hostname()}\n${directory}`)
    .digest("hex")
    .slice(0, 16);
}

test("a data directory keeps its scope when the machine has another name, and when it is moved", () => {
  const scope = scopeOf(root);
  expect(scope).toMatch(/^[0-9a-f]{16}$/);
  expect(elsewhere(() => scopeOf(root))).toBe(scope);
  const moved = join(place, "moved");
  renameSync(root, moved);
  expect(scopeOf(moved)).toBe(scope);
  expect(readdirSync(moved)).toEqual(["scope"]);
  // What is begun where it was is not taken for it.
  mkdirSync(root);
  expect(scopeOf(root)).not.toBe(scope);
});

test("sandboxes from before it was kept are still found", () => {
  mkdirSync(join(root, "sandboxes", "abc"), { recursive: true });
  const scope = former(root);
  expect(scopeOf(root)).toBe(scope);
  expect(elsewhere(() => scopeOf(root))).toBe(scope);
});

test("a copy has a scope of its own, which it keeps; the original keeps its own", () => {
  mkdirSync(join(root, "sandboxes", "abc"), { recursive: true });
  const scope = scopeOf(root);
  const copy = join(place, "copy");
  cpSync(root, copy, { recursive: true, preserveTimestamps: true });
  const copied = scopeOf(copy);
  expect(copied).toMatch(/^[0-9a-f]{16}$/);
  expect(copied).not.toBe(scope);
  expect(scopeOf(copy)).toBe(copied);
  expect(scopeOf(root)).toBe(scope);
  expect(readdirSync(copy).sort()).toEqual(["sandboxes", "scope"]);
});

test("a directory that was put back in its place keeps its scope", () => {
  const scope = scopeOf(root);
  const aside = join(place, "aside");
  cpSync(root, aside, { recursive: true });
  rmSync(root, { recursive: true });
  cpSync(aside, root, { recursive: true });
  expect(scopeOf(root)).toBe(scope);
});

test("what was restored has neither its original's scope nor that of a former directory in its place", () => {
  mkdirSync(join(root, "sandboxes", "abc"), { recursive: true });
  beginScope(root);
  const scope = scopeOf(root);
  expect(scope).not.toBe(former(root));
  expect(scopeOf(root)).toBe(scope);
});

test("processes that come at once agree, in a new directory and in a copy", async () => {
  using built = await bundle(new URL("./scope.ts", import.meta.url));
  const program = `const { scopeOf } = await import(process.argv[1]); process.stdout.write(scopeOf(process.argv[2]));`;
  const argv = ["--input-type=module", "-e", program, built.program];
  const all = async (directory: string) => {
    const run = () => promisify(execFile)(process.execPath, [...argv, directory]);
    const answers = await Promise.all(Array.from({ length: 4 }, run));
    return [...new Set(answers.map(({ stdout }) => stdout))];
  };
  expect(await all(root)).toEqual([scopeOf(root)]);
  const copy = join(place, "copy");
  cpSync(root, copy, { recursive: true });
  expect(await all(copy)).toEqual([scopeOf(copy)]);
});
