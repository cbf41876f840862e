import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const LAUNCHER = fileURLToPath(new URL("../../../../aido", import.meta.url));
const MAIN = "packages/aido/dist/cli/main.js";
/** Counts its runs, and makes a program that prints where it was started and with what. */
const BUILD = `
import { appendFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
appendFileSync("builds", "x");
if (existsSync("broken")) { console.error("it does not compile"); process.exit(1); }
mkdirSync("packages/aido/dist/cli", { recursive: true });
writeFileSync("${MAIN}", "console.log(process.cwd(), ...process.argv.slice(2)); process.exit(7)");
`;

test("a fresh clone installs, builds and runs; the next start only runs", async () => {
  await using tree = await makeTree();
  const first = await tree.start(["run", "task name.py"], tree.root);
  expect(first).toMatchObject({ code: 7, stdout: `${tree.root} run task name.py\n` });
  expect(first.stderr).toBe("aido: installing dependencies\naido: building\n");
  expect(await tree.start([], tree.root)).toMatchObject({ code: 7, stdout: `${tree.root}\n`, stderr: "" });
  expect(await tree.builds()).toBe(1);
});

test("it runs from any directory and through links, and stays in the caller's directory", async () => {
  await using tree = await makeTree();
  const elsewhere = join(tree.directory, "else where");
  await mkdir(join(elsewhere, "bin"), { recursive: true });
  await symlink(join(tree.root, "aido"), join(elsewhere, "bin/first"));
  await symlink("first", join(elsewhere, "bin/second"));
  const started = await tree.start(["ls"], elsewhere, join(elsewhere, "bin/second"));
  expect(started).toMatchObject({ code: 7, stdout: `${elsewhere} ls\n` });
  expect(await tree.start(["ls"], elsewhere, "./bin/first")).toMatchObject({ code: 7, stderr: "" });
});

test("starts at the same time build once", async () => {
  await using tree = await makeTree();
  const all = await Promise.all([1, 2, 3].map((each) => tree.start([`${each}`], tree.root)));
  expect(all.map(({ code }) => code)).toEqual([7, 7, 7]);
  expect(await tree.builds()).toBe(1);
});

test("a source that is new is built; a look that finds nothing new builds nothing", async () => {
  await using tree = await makeTree();
  await tree.start([], tree.root);
  await writeFile(join(tree.root, "packages/aido/src/new.ts"), "");
  expect((await tree.start([], tree.root)).stderr).toBe("aido: building\n");
  await mkdir(join(tree.root, ".git"));
  await writeFile(join(tree.root, ".git/index"), "");
  expect((await tree.start([], tree.root)).stderr).toBe("");
  expect(await tree.builds()).toBe(2);
});

test("a build that fails says so, runs nothing and is tried again by the next start", async () => {
  await using tree = await makeTree();
  await writeFile(join(tree.root, "broken"), "");
  const failed = await tree.start([], tree.root);
  expect(failed).toMatchObject({ code: 125, stdout: "" });
  expect(failed.stderr).toContain("it does not compile");
  await rm(join(tree.root, "broken"));
  expect(await tree.start([], tree.root)).toMatchObject({ code: 7 });
});

test("S0-41 in this tree ./aido run examples/hello.py says hello from a sandbox", async () => {
  await using tree = await makeTree();
  const own = dirname(LAUNCHER);
  const data = { AIDO_DATA_DIR: join(tree.directory, "data"), AIDO_DRIVER: "local" };
  const said = await tree.start(["run", "examples/hello.py"], own, "./aido", undefined, data);
  expect(said).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Hello from Python 3.* in a sandbox\n/),
  });
  expect(said.stdout).toMatch(/\nnetwork +none\nwrote +\/outputs\/report\.md\n$/);
  expect(await tree.start(["rm", "--all"], own, "./aido", undefined, data)).toMatchObject({ code: 0 });
});

test("without node, or with one that is too old, one line says what to do", async () => {
  await using tree = await makeTree();
  const missing = await tree.start([], tree.root, undefined, tree.directory);
  expect(missing).toMatchObject({ code: 125, stdout: "" });
  expect(missing.stderr).toMatch(/^aido: needs Node 20\.19 or newer, and there is no node\. .*\n$/);

  const bin = join(tree.directory, "bin");
  await mkdir(bin);
  await writeFile(join(bin, "node"), '#!/bin/sh\n[ "$1" = --version ] && echo v18.1.0\nexit 1\n', {
    mode: 0o755,
  });
  const old = await tree.start([], tree.root, undefined, `${bin}${delimiter}/usr/bin${delimiter}/bin`);
  expect(old).toMatchObject({ code: 125, stdout: "" });
  expect(old.stderr).toContain("is v18.1.0");
});

async function makeTree() {
  const directory = await mkdtemp(join(tmpdir(), "aido-launcher-test-"));
  const root = join(directory, "tree");
  await mkdir(join(root, "packages/aido/src"), { recursive: true });
  await mkdir(join(root, "scripts"));
  await copyFile(LAUNCHER, join(root, "aido"));
  const member = { name: "member", version: "1.0.0" };
  const manifest = { name: "tree", version: "1.0.0", private: true, workspaces: ["packages/aido"] };
  const scripts = { build: "node scripts/build-all.mjs" };
  const packages = {
    "": manifest,
    "packages/aido": member,
    "node_modules/member": { resolved: "packages/aido", link: true },
  };
  const lock = { ...manifest, lockfileVersion: 3, requires: true, packages };
  await writeFile(join(root, "package.json"), JSON.stringify({ ...manifest, scripts }));
  await writeFile(join(root, "packages/aido/package.json"), JSON.stringify(member));
  await writeFile(join(root, "package-lock.json"), JSON.stringify(lock));
  await writeFile(join(root, "scripts/build-all.mjs"), BUILD);
  const systemPath = [dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin"].join(delimiter);
  return {
    directory,
    root,
    builds: async () => (await readFile(join(root, "builds"), "utf8")).length,
    start: (
      options: string[],
      cwd: string,
      launcher = join(root, "aido"),
      path = systemPath,
      more: NodeJS.ProcessEnv = {},
    ) =>
      new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
        const env = { PATH: path, HOME: directory, ...more };
        execFile("/bin/sh", [launcher, ...options], { cwd, env }, (error, stdout, stderr) =>
          resolve({ code: typeof error?.code === "number" ? error.code : 0, stdout, stderr }),
        );
      }),
    [Symbol.asyncDispose]: async () => await rm(directory, { recursive: true, force: true }),
  };
}
