import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import { expect, onTestFinished, test } from "vitest";
import { FakeDriver } from "../../../drivers/fake/fake-driver.ts";
import { LocalImages } from "../../../drivers/local/local-images.ts";
import { GitBed } from "../testing/git-bed.ts";
import { BuiltSwarmImages } from "./built-swarm-images.ts";

const SOURCES = new URL("../../../../../../images/swarm-base", import.meta.url).pathname;
const LIMITS = { timeoutMs: 60_000, memoryBytes: 1 << 30, maxBytes: 1 << 30, network: "bridge" } as const;

/** The real files, with a script in place of the one that fetches for minutes; its calls are in `fetched`. */
async function makeImages(images: readonly string[] = ["node:20-slim"]) {
  const directory = mkdtempSync(join(tmpdir(), "aido-swarm-images-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const sources = join(directory, "sources");
  await cp(SOURCES, sources, { recursive: true });
  const adapter = join(directory, "adapter.cjs");
  writeFileSync(adapter, "adapter 1");
  const script = (ground: string) =>
    writeFileSync(
      join(sources, "on-host.sh"),
      `if [ "$1" = key ]; then echo ${ground}; exit; fi\necho "$1" >>${directory}/fetched\necho fetching >&2\n` +
        `env >${directory}/env\necho "the $1" >${directory}/part\necho ${directory}/part\n`,
    );
  script("g1");
  const driver = new FakeDriver({ images });
  const env = { PATH: process.env["PATH"], ANTHROPIC_API_KEY: "sk-secret", GITHUB_TOKEN: "ghp-secret" };
  const swarm = new BuiltSwarmImages({
    driver,
    sources: { directory: sources, adapter: () => adapter, cache: join(directory, "cache"), env },
    limits: LIMITS,
  });
  return {
    directory,
    driver,
    swarm,
    adapter,
    script,
    tags: () => driver.images.builds.map(({ tag }) => tag),
  };
}

test("S1-17 S1-18 S1-19 a missing base is made from the public image, with the adapter and Claude Code", async () => {
  const { driver, swarm } = await makeImages();
  const steps: string[] = [];
  const made = await swarm.ensureBase({ onProgress: (step) => steps.push(step) });
  expect(made).toMatchObject({
    image: "aimi-sandbox:base",
    rebuilt: true,
    checksum: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  const [build] = driver.images.builds;
  expect(build?.dockerfile).toMatch(/^FROM node:20-slim$/m);
  expect(build?.labels).toMatchObject({
    "org.aimi.base-from": "node:20-slim",
    "org.aimi.claude-code": expect.stringMatching(/^\d/),
  });
  const paths: string[] = [];
  for await (const { path } of build?.files ?? []) paths.push(path);
  expect(paths).toEqual(expect.arrayContaining(["acp-adapter", "install-system", "fetched/.keep"]));
  expect(steps).toContain("Making aimi-sandbox:base from node:20-slim");
});

test("S1-16 S1-19 a base that is there is taken, and made anew in its own way when a part has changed", async () => {
  const { driver, swarm, adapter, script, directory, tags } = await makeImages();
  await swarm.ensureBase({ ground: { kind: "debian" }, claude: false });
  expect(tags()).toEqual(["aimi-sandbox:debian", "aimi-sandbox:base"]);
  expect(await swarm.ensureBase()).toMatchObject({ rebuilt: false });
  writeFileSync(adapter, "adapter 2");
  expect(await swarm.ensureBase()).toMatchObject({ rebuilt: true });
  expect(tags().slice(2)).toEqual(["aimi-sandbox:base"]);
  script("g2");
  expect(await swarm.ensureBase()).toMatchObject({ rebuilt: true });
  expect(tags().slice(3)).toEqual(["aimi-sandbox:debian", "aimi-sandbox:base"]);
  expect(await swarm.ensureBase({ force: true })).toMatchObject({ rebuilt: true });
  expect(driver.images.builds.at(-1)?.labels).toMatchObject({
    "org.aimi.base-from": "debian",
    "org.aimi.claude-code": "none",
  });
  expect(await swarm.ensureBase({ claude: true })).toMatchObject({ rebuilt: true });
  expect(await swarm.ensureBase({ ground: { kind: "image", image: "node:20-slim" } })).toMatchObject({
    rebuilt: true,
  });
  const { readFileSync } = await import("node:fs");
  expect(readFileSync(join(directory, "env"), "utf8")).not.toContain("secret");
});

test("S1-19 a base that others made is left alone until another is asked for", async () => {
  const { swarm } = await makeImages(["aimi-sandbox:base", "node:20-slim"]);
  expect(await swarm.ensureBase()).toMatchObject({ rebuilt: false, checksum: undefined });
  expect(await swarm.ensureBase({ force: true })).toMatchObject({ rebuilt: true });
});

test("S1-3 S1-11 S1-16 S1-21 a project's image is made once, and again when files, settings or the base change", async () => {
  using bed = new GitBed({ "package-lock.json": "{}" });
  const { swarm, adapter, tags } = await makeImages();
  const ensure = async () => await swarm.ensureProject({ project: bed.project });
  expect(await ensure()).toMatchObject({
    image: "aimi-sandbox-origin:latest",
    slug: "origin",
    rebuilt: true,
    madeFrom: ["package-lock.json"],
  });
  expect(tags()).toEqual(["aimi-sandbox:base", "aimi-sandbox-origin:latest"]);
  expect(await ensure()).toMatchObject({ rebuilt: false });
  mkdirSync(join(bed.project, ".aimi"));
  writeFileSync(join(bed.project, ".aimi/x"), "");
  expect(await ensure()).toMatchObject({ rebuilt: true });
  writeFileSync(adapter, "adapter 2");
  expect(await ensure()).toMatchObject({ rebuilt: true });
  expect(tags().slice(3)).toEqual(["aimi-sandbox:base", "aimi-sandbox-origin:latest"]);
  expect(await ensure()).toMatchObject({ rebuilt: false });
  expect(await swarm.ensureProject({ project: bed.project, force: true })).toMatchObject({ rebuilt: true });
  expect(tags().slice(5)).toEqual(["aimi-sandbox-origin:latest"]);
});

test("S1-21 a wrong Dockerfile is told before the base is made", async () => {
  using bed = new GitBed();
  const { swarm, tags } = await makeImages();
  mkdirSync(join(bed.project, ".aimi"));
  writeFileSync(join(bed.project, ".aimi/Dockerfile.sandbox"), "\nFROM node:20\n");
  await expect(swarm.ensureProject({ project: bed.project })).rejects.toMatchObject({
    code: "VALIDATION_ERROR",
    message: expect.stringContaining(".aimi/Dockerfile.sandbox:2: "),
  });
  writeFileSync(join(bed.project, ".aimi/Dockerfile.sandbox"), "FROM aimi-sandbox-origin:latest\n");
  await expect(swarm.ensureProject({ project: bed.project })).rejects.toMatchObject({
    code: "VALIDATION_ERROR",
    message: expect.stringContaining("the image that it makes"),
  });
  expect(tags()).toEqual([]);
});

test("S1-18 where npm gives nothing in the build, Claude Code is fetched on this machine", async () => {
  const { swarm, driver } = await makeImages();
  const { images } = driver;
  const build = images.build.bind(images);
  const tried: string[][] = [];
  images.build = async (request, options) => {
    const paths: string[] = [];
    for await (const { path } of request.files) paths.push(path);
    tried.push(paths.filter((path) => path.startsWith("fetched/")));
    if (!paths.includes("fetched/claude"))
      throw new AidoError("IMAGE_BUILD_FAILED", "The build failed: '/opt/aimi/install-claude' returned 1");
    return await build(request, options);
  };
  expect(await swarm.ensureBase()).toMatchObject({ rebuilt: true });
  expect(tried).toEqual([["fetched/.keep"], ["fetched/claude"]]);
  expect(await swarm.ensureBase()).toMatchObject({ rebuilt: false });
});

test("S1-14 what cannot be installed is told in the script's own words, with what a Dockerfile needs", async () => {
  const { swarm, driver } = await makeImages();
  using git = new GitBed({ "Cargo.lock": "version = 4\n" });
  await swarm.ensureBase();
  const log = [
    "Step 4/6 : RUN",
    "aimi: cargo 1.63.0 does not know version 4",
    "aimi: A Dockerfile can:",
    "aimi: FROM aimi-sandbox:base",
    "Removing intermediate container",
  ].join("\n");
  const failure = new AidoError("IMAGE_BUILD_FAILED", "The build failed: code 3", { details: { log } });
  driver.images.build = () => Promise.reject(failure);
  await expect(swarm.ensureProject({ project: git.project })).rejects.toMatchObject({
    code: "IMAGE_BUILD_FAILED",
    message: expect.stringMatching(
      /^aimi-sandbox-\S+ cannot be made: cargo 1\.63\.0 does not know version 4$/,
    ),
    hint: "A Dockerfile can:\nFROM aimi-sandbox:base",
    details: { log },
  });
});

test("S1-17 S1-19 without a registry the error says how the base is made without one", async () => {
  const { swarm, driver } = await makeImages();
  driver.ensureImage = () => Promise.reject(new AidoError("IMAGE_PULL_FAILED", "no route"));
  await expect(swarm.ensureBase({ ground: { kind: "image", image: "node:99" } })).rejects.toMatchObject({
    code: "IMAGE_PULL_FAILED",
    hint: expect.stringContaining("`aido image build --swarm --from debian`"),
  });
});

test("what cannot be fetched is told with what to do, and a cancelled fetch ends", async () => {
  const { swarm, directory } = await makeImages();
  const script = join(directory, "sources/on-host.sh");
  writeFileSync(
    script,
    `[ "$1" = key ] && { echo k; exit; }\necho "swarm-base: debootstrap is missing" >&2\nexit 3\n`,
  );
  await expect(swarm.ensureBase({ ground: { kind: "debian" } })).rejects.toMatchObject({
    code: "RUNTIME_UNAVAILABLE",
    message: expect.stringContaining("debootstrap is missing"),
    hint: expect.stringContaining("--from"),
  });
  writeFileSync(script, `[ "$1" = key ] && { echo k; exit; }\necho begun >&2\nsleep 600 & wait\n`);
  const cancel = new AbortController();
  const reason = new Error("enough");
  const making = swarm.ensureBase({
    ground: { kind: "debian" },
    signal: cancel.signal,
    onProgress: (step) => step === "begun" && cancel.abort(reason),
  });
  await expect(making).rejects.toBe(reason);
});

test("a driver without images is refused with what to use", async () => {
  const driver = { name: "local", images: new LocalImages(), ensureImage: () => Promise.resolve() };
  const sources = { directory: SOURCES, adapter: () => "", cache: "", env: {} };
  const swarm = new BuiltSwarmImages({ driver, sources, limits: LIMITS });
  await expect(swarm.ensureBase()).rejects.toMatchObject({ code: "UNSUPPORTED" });
});
