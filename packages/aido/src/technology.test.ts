import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const SOURCE = import.meta.dirname;
const manifest = JSON.parse(readFileSync(join(SOURCE, "../package.json"), "utf8")) as {
  dependencies: Record<string, string>;
};

/** Sources below a folder as [path, text], tests left out. */
function sources(folder: string): [string, string][] {
  return readdirSync(join(SOURCE, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts"))
    .map((path) => [join(folder, path), readFileSync(join(SOURCE, folder, path), "utf8")]);
}

const importers = (folder: string, name: string): string[] =>
  sources(folder)
    .filter(([, text]) => new RegExp(`(from|import\\(|require\\()\\s*"${name}[/"]`).test(text))
    .map(([path]) => path);

test("S0-1 S0-5 the command line, the rules and the drivers are layers: imports point downwards only", () => {
  const upwards = (folder: string, above: string) =>
    sources(folder)
      .filter(([, text]) => new RegExp(`(from |import\\()"(\\.\\./)+${above}/`).test(text))
      .map(([path]) => path);
  for (const above of ["drivers", "stores", "http", "cli", "config"])
    expect(upwards("core", above)).toEqual([]);
  for (const above of ["http", "cli", "config"]) {
    expect(upwards("drivers", above)).toEqual([]);
    expect(upwards("stores", above)).toEqual([]);
  }
  // What the command line needs of a technology it gets from compose.
  const adapters = ["drivers", "stores", "http", "objects", "agents", "aws", "ssh", "cron", "swarm-adapter"];
  for (const adapter of adapters) expect(upwards("cli", adapter)).toEqual([]);
  expect(upwards("core/swarm/follow", "run")).toEqual([]);
});

test("S0-6 S0-7 S0-8 S0-9 S3-3 each chosen library is used, and only where its technology belongs", () => {
  expect(importers("cli", "commander").length).toBeGreaterThan(0);
  expect(importers("core", "commander")).toEqual([]);
  expect(importers("drivers/docker", "dockerode").length).toBeGreaterThan(0);
  for (const folder of ["core", "cli", "http", "drivers/local"])
    expect(importers(folder, "dockerode")).toEqual([]);
  expect(importers("http", "hono").length).toBeGreaterThan(0);
  for (const folder of ["core", "cli", "drivers"]) expect(importers(folder, "hono")).toEqual([]);
  expect(importers("spec", "yaml").length).toBeGreaterThan(0);
  expect(importers("compose", "nanoid").length).toBeGreaterThan(0);
});

test("every dependency has an exact version and loads on this Node", async () => {
  for (const [name, version] of Object.entries(manifest.dependencies)) {
    expect(version, name).toMatch(/^\d+\.\d+\.\d+$/);
    await expect(import(/* @vite-ignore */ name), name).resolves.toBeDefined();
  }
});

test("S3-65 S3-66 S3-67 S3-70 S3-80 what lands passes every suite: unit, on the stand-in, on engines, hostile, end to end", () => {
  const root = join(SOURCE, "../../..");
  const read = (path: string) => readFileSync(join(root, path), "utf8");
  expect(read(".ci/run")).toContain("exec scripts/test");
  const suites = ["unit", "docker", "local", "hostile", "e2e"];
  for (const suite of suites) expect(read("vitest.config.ts")).toContain(suite);
  expect(read("scripts/test")).toMatch(/lint agent asan fuzz unit docker local hostile e2e/);
  const tests = readdirSync(join(root, "packages/aido"), { recursive: true, encoding: "utf8" }).filter(
    (path) => path.endsWith(".test.ts") && !path.includes("node_modules"),
  );
  for (const suite of suites.slice(1)) {
    expect(tests.filter((path) => path.endsWith(`.${suite}.test.ts`)).length, suite).toBeGreaterThan(3);
  }
  // The stand-in for an engine keeps the promises that real drivers keep, by the same suite.
  for (const driver of ["fake/fake-driver", "docker/docker-driver.docker", "local/local-driver.local"]) {
    expect(read(`packages/aido/src/drivers/${driver}.test.ts`)).toContain("driverContract(");
  }
});
