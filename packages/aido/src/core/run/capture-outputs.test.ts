import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  appendFile,
  link,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { captureOutputs } from "./capture-outputs.ts";

async function makeTrees() {
  const root = await mkdtemp(join(tmpdir(), "aido-capture-"));
  const from = join(root, "from");
  const to = join(root, "to");
  await mkdir(from);
  await mkdir(to);
  return {
    root,
    from,
    to,
    async [Symbol.asyncDispose]() {
      await rm(root, { recursive: true });
    },
  };
}

test("S0-26 files are copied with their relative paths and their executable bit, without set-id bits", async () => {
  await using trees = await makeTrees();
  await mkdir(join(trees.from, "plots/deep"), { recursive: true });
  await writeFile(join(trees.from, "report.md"), "# report");
  await writeFile(join(trees.from, "plots/deep/a.svg"), "<svg/>", { mode: 0o4755 });
  const captured = await captureOutputs(trees.from, trees.to);
  expect(captured).toMatchObject({ files: ["plots/deep/a.svg", "report.md"], bytes: 14, skipped: [] });
  expect(await readFile(join(trees.to, "report.md"), "utf8")).toBe("# report");
  expect((await stat(join(trees.to, "plots/deep/a.svg"))).mode & 0o7777).toBe(0o755);
  expect((await stat(join(trees.to, "report.md"))).mode & 0o7777).toBe(0o644);
});

test("S0-81 links to files, to directories and out of the tree are noted, never followed", async () => {
  await using trees = await makeTrees();
  const secret = join(trees.root, "secret.txt");
  await writeFile(secret, "secret");
  await mkdir(join(trees.root, "host"));
  await writeFile(join(trees.root, "host/id_rsa"), "key");
  await symlink(secret, join(trees.from, "absolute"));
  await symlink("../secret.txt", join(trees.from, "relative"));
  await symlink("../host", join(trees.from, "directory"));
  await symlink("/proc/self/environ", join(trees.from, "environ"));
  await symlink("nowhere", join(trees.from, "dangling"));
  const captured = await captureOutputs(trees.from, trees.to);
  expect(captured.files).toEqual([]);
  expect(await readdir(trees.to)).toEqual([]);
  expect(captured.skipped).toEqual(
    ["absolute", "dangling", "directory", "environ", "relative"].map((path) => ({ path, reason: "symlink" })),
  );
});

test("pipes and sockets are noted and do not make the capture wait", async () => {
  await using trees = await makeTrees();
  execFileSync("mkfifo", [join(trees.from, "pipe")]);
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(join(trees.from, "socket"), resolve));
  try {
    const captured = await captureOutputs(trees.from, trees.to);
    expect(captured.files).toEqual([]);
    expect(captured.skipped).toEqual([
      { path: "pipe", reason: "pipe" },
      { path: "socket", reason: "socket" },
    ]);
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
});

test("S0-27 S0-28 S0-29 a file that has the name of one of aido's own gets another name", async () => {
  await using trees = await makeTrees();
  await writeFile(join(trees.to, "stdout.log"), "what was printed");
  await writeFile(join(trees.from, "stdout.log"), "forged");
  await writeFile(join(trees.from, "summary.json"), "{}");
  await mkdir(join(trees.from, "sub"));
  await writeFile(join(trees.from, "sub/stdout.log"), "fine");
  const captured = await captureOutputs(trees.from, trees.to);
  expect(captured.files).toEqual(["sub/stdout.log", "task-stdout.log", "task-summary.json"]);
  expect(captured.renamed).toEqual([
    { path: "stdout.log", as: "task-stdout.log" },
    { path: "summary.json", as: "task-summary.json" },
  ]);
  expect(await readFile(join(trees.to, "stdout.log"), "utf8")).toBe("what was printed");
});

test("S0-27 a file that gets another name takes that of no other file", async () => {
  await using trees = await makeTrees();
  await writeFile(join(trees.from, "stdout.log"), "forged");
  await writeFile(join(trees.from, "task-stdout.log"), "the task's own");
  const captured = await captureOutputs(trees.from, trees.to);
  expect(captured.renamed).toEqual([{ path: "stdout.log", as: "task-task-stdout.log" }]);
  expect(await readFile(join(trees.to, "task-stdout.log"), "utf8")).toBe("the task's own");
  expect(await readFile(join(trees.to, "task-task-stdout.log"), "utf8")).toBe("forged");
});

test("what the files hold is hashed as it is copied, holes too, of the first 256", async () => {
  await using trees = await makeTrees();
  for (let i = 0; i < 300; i++) await writeFile(join(trees.from, `f${String(i).padStart(3, "0")}`), `${i}`);
  await writeFile(join(trees.from, "a"), "");
  await truncate(join(trees.from, "a"), 1_000_000);
  const { files, contents } = await captureOutputs(trees.from, trees.to);
  const sha256 = (data: string | Buffer) => createHash("sha256").update(data).digest("hex");
  expect(files).toHaveLength(301);
  expect(contents).toHaveLength(256);
  expect(contents[0]).toEqual({ path: "a", size: 1_000_000, sha256: sha256(Buffer.alloc(1_000_000)) });
  expect(contents[12]).toEqual({ path: "f011", size: 2, sha256: sha256("11") });
});

test("a file with two names is copied under both", async () => {
  await using trees = await makeTrees();
  await writeFile(join(trees.from, "a"), "same");
  await link(join(trees.from, "a"), join(trees.from, "b"));
  expect((await captureOutputs(trees.from, trees.to)).files).toEqual(["a", "b"]);
});

test("names that are not text are copied as they are", async () => {
  await using trees = await makeTrees();
  const odd = Buffer.concat([Buffer.from(`${trees.from}/`), Buffer.from([0xff, 0xfe, 0x0a])]);
  await writeFile(odd, "odd");
  await captureOutputs(trees.from, trees.to);
  const names = await readdir(trees.to, { encoding: "buffer" });
  expect(names).toEqual([Buffer.from([0xff, 0xfe, 0x0a])]);
});

test("limits of files, bytes and depth hold, and what is beyond them is noted", async () => {
  await using trees = await makeTrees();
  await mkdir(join(trees.from, "a/b/c"), { recursive: true });
  await writeFile(join(trees.from, "a/b/c/deep"), "x");
  await writeFile(join(trees.from, "small"), "x");
  await writeFile(join(trees.from, "sparse"), "");
  await truncate(join(trees.from, "sparse"), 2 ** 40);
  const shallow = await captureOutputs(trees.from, trees.to, {
    limits: { files: 100, bytes: 1_000, depth: 2 },
  });
  expect(shallow.files).toEqual(["small"]);
  expect(shallow.skipped).toEqual([
    { path: "a/b/c", reason: "deeper than 2 directories" },
    { path: "sparse", reason: "more than 1000 bytes in all" },
  ]);
  const few = await captureOutputs(trees.from, trees.to, { limits: { files: 2, bytes: 1_000, depth: 9 } });
  expect(few.skipped.some((entry) => entry.reason === "more than 2 entries")).toBe(true);
});

test("a file with holes takes no more room on the host than in the sandbox", async () => {
  await using trees = await makeTrees();
  const path = join(trees.from, "sparse");
  await writeFile(path, "begin");
  await truncate(path, 64 * 1024 ** 2);
  await appendFile(path, "end");
  await captureOutputs(trees.from, trees.to);
  const copy = await stat(join(trees.to, "sparse"));
  expect(copy.size).toBe(64 * 1024 ** 2 + 3);
  expect(copy.blocks * 512).toBeLessThan(1024 ** 2);
  expect((await readFile(join(trees.to, "sparse"))).equals(await readFile(path))).toBe(true);
});

test("a large number of skipped entries is counted, and a hundred are named", async () => {
  await using trees = await makeTrees();
  for (let i = 0; i < 150; i++) await symlink("x", join(trees.from, `link-${i}`));
  const captured = await captureOutputs(trees.from, trees.to);
  expect(captured.skippedTotal).toBe(150);
  expect(captured.skipped).toHaveLength(100);
});

test("S0-81 a directory that is swapped for a link while it is read never leads out", async () => {
  await using trees = await makeTrees();
  const host = join(trees.root, "host");
  await mkdir(host);
  await writeFile(join(host, "id_rsa"), "key");
  await mkdir(join(trees.from, "dir"));
  await writeFile(join(trees.from, "dir/ok"), "ok");
  await symlink(host, join(trees.from, "link"));
  const done = new AbortController();
  const swapping = (async () => {
    while (!done.signal.aborted) {
      await rename(join(trees.from, "dir"), join(trees.from, "aside"));
      await rename(join(trees.from, "link"), join(trees.from, "dir"));
      await rename(join(trees.from, "dir"), join(trees.from, "link"));
      await rename(join(trees.from, "aside"), join(trees.from, "dir"));
    }
  })();
  try {
    for (let round = 0; round < 200; round++) {
      const captured = await captureOutputs(trees.from, trees.to);
      expect(captured.files.filter((file) => file.includes("id_rsa"))).toEqual([]);
    }
  } finally {
    done.abort();
    await swapping;
  }
});

test("a capture that is aborted ends with the signal's reason", async () => {
  await using trees = await makeTrees();
  await writeFile(join(trees.from, "a"), "x");
  const signal = AbortSignal.abort(new Error("enough"));
  await expect(captureOutputs(trees.from, trees.to, { signal })).rejects.toThrow("enough");
});
