// Runs the suites one after the other and adds up what they report. See scripts/test.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { leftovers } from "./leftovers.mjs";

const CI = process.env.CI === "true" || process.env.CI === "1";
const ALL = ["lint", "agent", "asan", "fuzz", "unit", "docker", "local", "hostile", "e2e"];
/** Long enough to walk every frame; longer runs are for a change of the parser. */
const FUZZ_SECONDS = 20;
const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !ALL.includes(name));
if (unknown.length > 0) {
  console.error(`unknown suite ${unknown.join(", ")}; there are ${ALL.join(" ")}`);
  process.exit(2);
}
const wanted = ALL.filter((name) => asked.length === 0 || asked.includes(name));

const scratch = mkdtempSync(join(tmpdir(), "aido-suites-"));
const total = { passed: 0, failed: 0, skipped: 0 };
const failures = [];

const has = (command) => spawnSync("sh", ["-c", `command -v ${command}`], { stdio: "ignore" }).status === 0;

/** Why a suite cannot run here, or undefined. */
const missing = {
  lint: () => undefined,
  agent: () => (has("musl-gcc") ? undefined : "musl-gcc is not installed"),
  asan: () => (has("clang") ? undefined : "clang is not installed"),
  fuzz: () => (has("clang") ? undefined : "clang is not installed"),
  unit: () => undefined,
  docker: () => engineMissing(),
  local: () => (has("bwrap") ? undefined : "bubblewrap is not installed"),
  hostile: () => (has("bwrap") ? engineMissing() : "bubblewrap is not installed"),
  e2e: () => (has("bwrap") ? engineMissing() : "bubblewrap is not installed"),
};

let engine;
function engineMissing() {
  engine ??= spawnSync("bash", ["scripts/test-engine.sh", "start"], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    timeout: 600_000,
  });
  if (engine.status !== 0) return "no Docker engine answers and none could be started";
  const images = spawnSync("bash", ["scripts/test-images.sh"], {
    stdio: ["ignore", "inherit", "inherit"],
    timeout: 900_000,
  });
  if (images.status !== 0) return "the test images could not be made";
  const s3 = spawnSync("bash", ["scripts/test-s3.sh", "fetch"], {
    stdio: ["ignore", "ignore", "inherit"],
    timeout: 300_000,
  });
  return s3.status === 0 ? undefined : "the S3 server for the tests could not be fetched";
}

function run(command, args, options = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      stdio: ["ignore", "inherit", "inherit"],
      env: { ...process.env, ...options.env },
    });
    const timer = setTimeout(() => child.kill("SIGKILL"), options.timeoutMs ?? 900_000);
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve(code ?? 1);
    });
  });
}

async function vitest(project, label, { env = {}, files = [] } = {}) {
  const report = join(scratch, `${label}.json`);
  const code = await run(
    process.execPath,
    [
      "node_modules/vitest/vitest.mjs",
      "run",
      "--project",
      project,
      "--reporter=dot",
      "--reporter=json",
      `--outputFile.json=${report}`,
      ...files,
    ],
    { env },
  );
  let data;
  try {
    data = JSON.parse(readFileSync(report, "utf8"));
  } catch {
    count(label, 0, 1);
    return;
  }
  for (const file of data.testResults) {
    for (const test of file.assertionResults) {
      if (test.status === "failed") failures.push(`${label}: ${test.fullName}`);
    }
    if (file.status === "failed" && file.assertionResults.length === 0) {
      failures.push(`${label}: ${file.name} did not load`);
    }
  }
  const broken = data.testResults.filter((f) => f.status === "failed" && f.assertionResults.length === 0);
  const unexplained = code !== 0 && data.numFailedTests === 0 && broken.length === 0 ? 1 : 0;
  if (unexplained > 0) failures.push(`${label}: vitest ended with ${code}`);
  total.passed += data.numPassedTests;
  total.failed += data.numFailedTests + broken.length + unexplained;
  total.skipped += data.numPendingTests + (data.numTodoTests ?? 0);
}

function count(label, passed, failed) {
  total.passed += passed;
  total.failed += failed;
  if (failed > 0) failures.push(label);
}

const suites = {
  lint: async () => {
    const biome = await run(process.execPath, ["node_modules/@biomejs/biome/bin/biome", "check", "."]);
    count("lint", biome === 0 ? 1 : 0, biome === 0 ? 0 : 1);
    const types = await run(process.execPath, [
      "node_modules/typescript/bin/tsc",
      "-p",
      "tsconfig.test.json",
    ]);
    count("types of the tests", types === 0 ? 1 : 0, types === 0 ? 0 : 1);
  },
  agent: () => vitest("agent", "agent"),
  asan: async () => {
    const built = await run("make", ["-s", "-C", "agent", "asan"]);
    count("asan build", built === 0 ? 1 : 0, built === 0 ? 0 : 1);
    if (built === 0) {
      await vitest("agent", "agent-asan", {
        env: { AIDO_TEST_AGENT: join(process.cwd(), "agent/build/asan/aido-agent") },
        files: ["agent/test/supervisor", "agent/test/tools"],
      });
    }
  },
  fuzz: async () => {
    const code = await run("make", ["-s", "-C", "agent", "fuzz", `FUZZ_SECONDS=${FUZZ_SECONDS}`]);
    count("fuzz", code === 0 ? 1 : 0, code === 0 ? 0 : 1);
  },
  unit: () => vitest("unit", "unit"),
  docker: () => vitest("docker", "docker"),
  local: () => vitest("local", "local"),
  hostile: () => vitest("hostile", "hostile"),
  e2e: () => vitest("e2e", "e2e"),
};

const before = leftovers();
try {
  for (const name of wanted) {
    const reason = missing[name]();
    if (reason !== undefined) {
      if (CI) {
        count(`${name}: ${reason}`, 0, 1);
      } else {
        console.error(`== ${name} skipped: ${reason}`);
        total.skipped += 1;
      }
      continue;
    }
    console.error(`== ${name}`);
    const started = Date.now();
    await suites[name]();
    console.error(`== ${name} took ${Math.round((Date.now() - started) / 1000)} s`);
  }
  const left = leftovers().filter((item) => !before.includes(item));
  for (const item of left) failures.push(`left behind: ${item}`);
  count("leftovers", left.length === 0 ? 1 : 0, 0);
  total.failed += left.length;
} finally {
  rmSync(scratch, { recursive: true, force: true });
  if (engine !== undefined) {
    spawnSync("bash", ["scripts/test-engine.sh", "stop"], { stdio: ["ignore", "inherit", "inherit"] });
  }
}

for (const failure of failures) console.log(`FAILED ${failure}`);
const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : "";
console.log(`${total.passed} passed, ${total.failed} failed${skipped}`);
process.exit(total.failed === 0 && total.passed > 0 ? 0 : 1);
