import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { EnsuredImage } from "../../src/core/swarm/image/swarm-images.ts";
import { GitBed } from "../../src/core/swarm/testing/git-bed.ts";
import { until } from "../contract/driver-backend.ts";
import { AidoProcess } from "../e2e/aido-process.ts";
import { ImagesBed, KEYS } from "./images-bed.ts";
import { makeWheel } from "./make-wheel.ts";

const MIB = 1_048_576;
const SHOP = { name: "shop", version: "1.0.0", dependencies: { dep: "file:dep" } };
const LOCK = { name: "shop", version: "1.0.0", lockfileVersion: 3, requires: true };
/** In the project itself, so that it is installed without a network. */
const OWN_PACKAGE = { dep: { version: "1.0.0" }, "node_modules/dep": { resolved: "dep", link: true } };
let bed: ImagesBed;
let small: EnsuredImage;
let base: EnsuredImage;

beforeAll(async () => {
  bed = await ImagesBed.start();
  small = await bed.images.ensureBase({ ground: { kind: "debian" }, claude: false });
  base = await bed.images.ensureBase({ claude: true });
}, 400_000);

afterAll(async () => {
  await bed?.[Symbol.asyncDispose]();
});

/** A repository whose image has a name of its own. */
function makeProject(name: string, files: Record<string, string>): GitBed {
  const git = new GitBed(files);
  onTestFinished(() => git[Symbol.dispose]());
  git.user("remote", "set-url", "origin", `https://me:${KEYS.GITHUB_TOKEN}@example.com/team/${name}.git`);
  return git;
}

function put(git: GitBed, name: string, content: string | Buffer): void {
  mkdirSync(dirname(join(git.project, name)), { recursive: true });
  writeFileSync(join(git.project, name), content);
}

function commit(git: GitBed): void {
  git.user("add", "--all");
  git.user("commit", "--quiet", "--message", "more");
}

const dangling = async () => await bed.docker("images", "--quiet", "--filter", "dangling=true");

test("S1-17 S1-18 S1-19 the base has what a worker needs, on Debian's packages and without a network", async () => {
  expect(small).toMatchObject({ image: "aimi-sandbox:base", rebuilt: true });
  expect(base).toMatchObject({ rebuilt: true, image: "aimi-sandbox:base" });
  expect(base.bytes - small.bytes).toBeGreaterThan(100 * MIB);
  const said = await bed.run(
    "aimi-sandbox:base",
    [
      "set -e; id -u; pwd; echo $HOME; touch /workspace/x ~/x",
      "for each in node npm python3 git ssh curl claude pnpm yarn; do command -v $each >/dev/null || echo no $each; done",
      "node -e 'console.log(process.versions.node.split(`.`)[0] >= 20)'",
      "claude --version; test -x /opt/aimi/acp-adapter; head -c 19 /opt/aimi/acp-adapter; echo",
      "find / -xdev -type f -perm /6000 2>/dev/null | wc -l; ls -A /workspace; test -e /etc/ssl/certs/ca-certificates.crt",
    ].join("\n"),
  );
  expect(said.split("\n")).toEqual([
    ...["1000", "/workspace", "/home/agent", "true"],
    expect.stringMatching(/^\d+\.\d+\.\d+ \(Claude Code\)$/),
    ...["#!/usr/bin/env node", "0", "x"],
  ]);
  expect(await bed.images.ensureBase()).toEqual({ ...base, rebuilt: false });
});

test("S1-3 S1-11 S1-13 S1-14 S1-15 S1-22 the template's image has the source, its packages and the settings", async () => {
  const git = makeProject("Shop", {
    "package.json": JSON.stringify({ ...SHOP, scripts: { postinstall: "echo ran > .installed" } }),
    "package-lock.json": JSON.stringify({ ...LOCK, packages: { "": SHOP, ...OWN_PACKAGE } }),
    "dep/package.json": '{"name":"dep","version":"1.0.0","main":"index.js"}',
    "dep/index.js": "module.exports = 'from npm';\n",
    "requirements.txt": "--no-index\n--find-links ./wheels\ntool==1.0\n",
  });
  put(git, "wheels/tool-1.0-py3-none-any.whl", makeWheel("tool", "said = 'from pip'\n"));
  put(git, ".aimi/tasks/2026-01-01-a-tasks.json", "{}");
  commit(git);
  const steps: string[] = [];
  const made = await bed.images.ensureProject({
    project: git.project,
    onProgress: (step) => steps.push(step),
  });
  expect(made).toMatchObject({
    image: "aimi-sandbox-shop:latest",
    slug: "shop",
    rebuilt: true,
    madeFrom: ["package-lock.json", "requirements.txt"],
    leftOut: [],
  });
  expect(steps).toContain("installing what package-lock.json asks for, with npm");
  const said = await bed.run(
    made.image,
    [
      "cat .installed; node -p 'require(`dep`)'; python3 -c 'import tool; print(tool.said)'",
      "ls .aimi/tasks; stat -c %u . dep .aimi; ls -A | grep -cx .git",
      "true",
    ].join("\n"),
  );
  expect(said.split("\n")).toEqual([
    ...["ran", "from npm", "from pip", "2026-01-01-a-tasks.json", "1000", "1000", "1000", "0"],
  ]);
  const label = '{{index .Config.Labels "org.aimi.dockerfile-checksum"}}';
  expect(await bed.docker("inspect", "--format", label, made.image)).toBe(made.checksum);
});

const DEP = {
  "dep/package.json": '{"name":"dep","version":"1.0.0","main":"index.js"}',
  "dep/index.js": "module.exports = 'from a lock file';\n",
};
const PNPM_LOCK = `lockfileVersion: '9.0'
settings:
  autoInstallPeers: true
  excludeLinksFromLockfile: false
importers:
  .:
    dependencies:
      dep:
        specifier: file:dep
        version: file:dep
packages:
  dep@file:dep:
    resolution: {directory: dep, type: directory}
snapshots:
  dep@file:dep: {}
`;
const YARN_LOCK = '# yarn lockfile v1\n\n\n"dep@file:dep":\n  version "1.0.0"\n';

test.each([
  ["pnpm", "pnpm-lock.yaml", PNPM_LOCK],
  ["yarn", "yarn.lock", YARN_LOCK],
])("S1-14 %s installs what its lock file asks for", async (kind, file, lock) => {
  const git = makeProject(`with-${kind}`, { ...DEP, "package.json": JSON.stringify(SHOP), [file]: lock });
  const made = await bed.images.ensureProject({ project: git.project });
  expect(made.madeFrom).toEqual([file]);
  expect(await bed.run(made.image, "node -p 'require(`dep`)'")).toBe("from a lock file");
});

test("S1-14 a project that wants another yarn than the image's is told what its own Dockerfile needs", async () => {
  const wanting = JSON.stringify({ ...SHOP, packageManager: "yarn@4.9.1" });
  const git = makeProject("new-yarn", { ...DEP, "package.json": wanting, "yarn.lock": YARN_LOCK });
  await expect(bed.images.ensureProject({ project: git.project })).rejects.toMatchObject({
    code: "IMAGE_BUILD_FAILED",
    message: expect.stringContaining("This project wants a yarn from version 2 on"),
    hint: expect.stringMatching(
      /^A \.aimi\/Dockerfile\.sandbox .*\nFROM aimi-sandbox:base\nUSER root\nRUN corepack enable/,
    ),
  });
});

test("S1-16 S1-21 an image is made again only when something changed, and the one before it goes", async () => {
  const git = makeProject("again", { "a.txt": "1\n" });
  const ensure = async () => await bed.images.ensureProject({ project: git.project });
  const first = await ensure();
  expect(await ensure()).toEqual({ ...first, rebuilt: false });
  put(git, "a.txt", "2\n");
  expect(await ensure()).toMatchObject({ rebuilt: false });
  commit(git);
  const second = await ensure();
  expect(second.rebuilt).toBe(true);
  expect(await bed.run(second.image, "cat a.txt")).toBe("2");
  put(
    git,
    ".aimi/Dockerfile.sandbox",
    "FROM aimi-sandbox:base\nCOPY --chown=1000 a.txt /workspace/own.txt\n",
  );
  const third = await ensure();
  expect(third).toMatchObject({ rebuilt: true, madeFrom: [".aimi/Dockerfile.sandbox"] });
  expect(await bed.run(third.image, "ls -A")).toBe("own.txt");
  expect(await ensure()).toMatchObject({ rebuilt: false });
  for (const { id } of [first, second]) await expect(bed.docker("inspect", id)).rejects.toThrow("No such");
});

test("S1-13 S1-21 a hostile project reaches nothing outside of it", async () => {
  const odd = "new\nline \u001b[31m'\"$(id)";
  const git = makeProject("hostile", {
    ".dockerignore": "**\n!out\n",
    Dockerfile: "FROM scratch\n",
    ".gitattributes": "*.txt filter=evil export-ignore\n",
    "a.txt": "as committed\n",
    [odd]: "odd\n",
    "source/Dockerfile": "FROM evil\n",
  });
  const mark = join(git.directory, "ran");
  symlinkSync("/etc", join(git.project, "out"));
  git.user("add", "out");
  git.user("commit", "--quiet", "--message", "a link");
  for (const kind of ["smudge", "clean", "process"])
    git.user("config", `filter.evil.${kind}`, `touch ${mark}`);
  const made = await bed.images.ensureProject({ project: git.project });
  expect(made.leftOut).toEqual(["out"]);
  const said = await bed.run(
    made.image,
    "cat a.txt Dockerfile .dockerignore source/Dockerfile; ls -A --quoting-style=c",
  );
  expect(said).toContain("as committed\nFROM scratch\n**\n!out\nFROM evil\n");
  expect(said).toContain(JSON.stringify(odd).replace("\\u001b", "\\033"));
  expect(said).not.toContain('"out"');
  put(git, ".aimi/Dockerfile.sandbox", "FROM aimi-sandbox:base\nCOPY out/passwd /stolen\n");
  await expect(bed.images.ensureProject({ project: git.project })).rejects.toMatchObject({
    code: "IMAGE_BUILD_FAILED",
  });
  put(git, ".aimi/Dockerfile.sandbox", "FROM aimi-sandbox:base\nCOPY ../../../etc/passwd /stolen\n");
  await expect(bed.images.ensureProject({ project: git.project })).rejects.toMatchObject({
    code: "IMAGE_BUILD_FAILED",
  });
  expect(() => execFileSync("test", ["-e", mark])).toThrow();
  expect(await dangling()).toBe("");
});

test("S1-18 no key is in an image: not in its files, its history or its settings", async () => {
  const git = makeProject("keys", { "a.txt": "1\n" });
  put(
    git,
    ".aimi/Dockerfile.sandbox",
    "FROM aimi-sandbox:base\nCOPY . /workspace\nRUN env > /tmp/environment\n",
  );
  const { image } = await bed.images.ensureProject({ project: git.project });
  expect(await bed.docker("inspect", image)).not.toContain("canary");
  expect(await bed.docker("history", "--no-trunc", image)).not.toContain("canary");
  expect(await bed.run(image, "cat /tmp/environment")).not.toContain("canary");
  const saved = spawn("docker", ["save", image], { env: bed.env, stdio: ["ignore", "pipe", "inherit"] });
  let rest = "";
  let bytes = 0;
  let found = false;
  for await (const chunk of saved.stdout as AsyncIterable<Buffer>) {
    const text = rest + chunk.toString("latin1");
    found ||= Object.values(KEYS).some((key) => text.includes(key));
    rest = text.slice(-64);
    bytes += chunk.length;
  }
  expect(bytes).toBeGreaterThan(100 * MIB);
  expect(found).toBe(false);
});

test("S1-21 a builder that is killed leaves no container, and the next goes on from what it made", async () => {
  const git = makeProject("killed", { "a.txt": "1\n" });
  put(
    git,
    ".aimi/Dockerfile.sandbox",
    "FROM aimi-sandbox:base\nRUN echo made > /tmp/made\nRUN sleep 4\nCOPY a.txt /workspace/\n",
  );
  {
    await using building = new AidoProcess(["build-image"], { cwd: git.project, env: bed.env });
    await until("the build sleeps", async () => (await bed.docker("ps", "--no-trunc")).includes("sleep 4"));
    building.child.kill("SIGKILL");
    await building.end();
  }
  await until("its container is gone", async () => (await bed.docker("ps", "--all", "--quiet")) === "");
  expect(await bed.docker("images", "--quiet", "aimi-sandbox-killed")).toBe("");
  await using again = new AidoProcess(["build-image", "--json"], { cwd: git.project, env: bed.env });
  const ended = await again.end();
  expect(ended).toMatchObject({ code: 0 });
  expect(JSON.parse(ended.stdout)).toMatchObject({ image: "aimi-sandbox-killed:latest", rebuilt: true });
  expect(await bed.run("aimi-sandbox-killed:latest", "cat /tmp/made a.txt")).toBe("made\n1");
  expect(await dangling()).toBe("");
});

test("S1-21 the command line says what is wrong, and where", async () => {
  const git = makeProject("wrong", {});
  const failing = async (argv: readonly string[], env: Record<string, string> = {}, cwd = git.project) => {
    await using aido = new AidoProcess(argv, { cwd, env: { ...bed.env, ...env } });
    return await aido.end();
  };
  const build = ["image", "build", "--swarm"];
  put(git, ".aimi/Dockerfile.sandbox", "# mine\nFROM node:20\n");
  expect(await failing(build)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(
      ".aimi/Dockerfile.sandbox:2: the first instruction must be FROM aimi-sandbox:base",
    ),
  });
  expect(await failing(build, {}, bed.directory)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("is not in a git repository"),
  });
  expect(await failing([...build, "--server", "http://127.0.0.1:9"])).toMatchObject({
    code: 9,
    stderr: expect.stringContaining("on this machine only"),
  });
  expect(await failing([...build, "--base-only"], { DOCKER_HOST: "unix:///nowhere.sock" })).toMatchObject({
    code: 8,
    stderr: expect.stringContaining("nowhere.sock"),
  });
  expect(await failing([...build, "--driver", "local"])).toMatchObject({ code: 9 });
  expect(await failing([...build, "--base-only", "--from", "127.0.0.1:9/no/such"])).toMatchObject({
    stderr: expect.stringContaining("--from debian"),
  });
});
