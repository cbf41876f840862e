// Runs the suites, three at a time, and adds up what they report. See scripts/test.
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { availableParallelism, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { leftovers } from "./leftovers.mjs";

const CI = process.env.CI === "true" || process.env.CI === "1";
/** In the order in which they are begun: the longest first, so that no lane waits long for the others at the end. */
const ALL = ["e2e", "docker", "local", "unit", "hostile", "asan", "agent", "fuzz", "lint"];
const ON_ENGINE = ["e2e", "docker", "hostile"];
/** While the engine is made ready: one that is long, then the shortest, so that those on the engine hardly wait for a lane. */
const MEANWHILE = ["local", "lint", "fuzz", "agent", "asan"];
/** Most suites wait more than they compute; none looks at what the others make. */
const LANES = Math.min(3, availableParallelism() + 1);
/** Long enough to walk every frame; longer runs are for a change of the parser. */
const FUZZ_SECONDS = 20;
/** Far beyond what the longest takes on a slow machine: only what hangs is ended. */
const SUITE_LIMIT_MS = 40 * 60_000;
const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !ALL.includes(name));
if (unknown.length > 0) {
  console.error(`unknown suite ${unknown.join(", ")}; there are ${ALL.join(" ")}`);
  process.exit(2);
}
const wanted = ALL.filter((name) => asked.length === 0 || asked.includes(name));

const scratch = mkdtempSync(join(tmpdir(), "aido-suites-"));
/** Where the tests put their files: making and removing many small ones takes a disk a tenth of the whole time. */
const temporary = inMemory() ?? tmpdir();
/** What runs now, and whether somebody has asked for the end of it all. */
const children = new Set();
let isStopped = false;
const total = { passed: 0, failed: 0, skipped: 0 };
const failures = [];

const has = (command) => spawnSync("sh", ["-c", `command -v ${command}`], { stdio: "ignore" }).status === 0;

/** Why a suite cannot run here, or undefined. */
const missing = {
  lint: () => undefined,
  agent: () => (has("musl-gcc") ? undefined : "musl-gcc is not installed"),
  asan: () =>
    has("clang") ? (has("bwrap") ? undefined : "bubblewrap is not installed") : "clang is not installed",
  fuzz: () => (has("clang") ? undefined : "clang is not installed"),
  unit: () => undefined,
  docker: () => engineMissing(),
  local: () => (has("bwrap") ? undefined : "bubblewrap is not installed"),
  hostile: () => (has("bwrap") ? engineMissing() : "bubblewrap is not installed"),
  e2e: () => (has("bwrap") ? engineMissing() : "bubblewrap is not installed"),
};

let engine;
let isEngineSettled = false;
/** Made once, whoever asks first; others go on meanwhile. */
function engineMissing() {
  engine ??= prepareEngine().finally(() => {
    isEngineSettled = true;
  });
  return engine;
}

/** The next suite to begin, which `waiting` then has no longer; undefined when there is none. */
async function nextOf(waiting) {
  while (waiting.length > 0 && !isStopped) {
    const isEngineAwaited = !isEngineSettled && waiting.some((name) => ON_ENGINE.includes(name));
    const next = isEngineAwaited ? MEANWHILE.find((name) => waiting.includes(name)) : waiting[0];
    if (next !== undefined) return waiting.splice(waiting.indexOf(next), 1)[0];
    await engineMissing();
  }
  return undefined;
}

async function prepareEngine() {
  const script = (name, args, timeoutMs) => run("bash", [`scripts/${name}`, ...args], { timeoutMs });
  const fetched = script("test-s3.sh", ["fetch"], 300_000);
  if ((await script("test-engine.sh", ["start"], 600_000)) !== 0) {
    return "no Docker engine answers and none could be started";
  }
  if ((await script("test-images.sh", [], 900_000)) !== 0) return "the test images could not be made";
  return (await fetched) === 0 ? undefined : "the S3 server for the tests could not be fetched";
}

/** Ends with its exit code. What it prints goes to the file `log`, or straight on. */
function run(command, args, options = {}) {
  if (isStopped) return Promise.resolve(1);
  return new Promise((resolve) => {
    const out = options.log === undefined ? 2 : openSync(options.log, "a");
    const child = spawn(command, args, {
      stdio: ["ignore", out, out],
      env: { ...process.env, ...options.env },
    });
    if (options.log !== undefined) closeSync(out);
    children.add(child);
    const timer = setTimeout(() => child.kill("SIGKILL"), options.timeoutMs ?? SUITE_LIMIT_MS);
    const end = (code) => {
      clearTimeout(timer);
      children.delete(child);
      resolve(code);
    };
    child.on("error", () => end(1));
    child.on("close", (code) => end(code ?? 1));
  });
}

async function vitest(project, log, { label = project, env = {}, files = [] } = {}) {
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
      // In a file every dot would bring its colour.
      ...(log === undefined ? [] : ["--no-color"]),
      ...files,
    ],
    { env: { TMPDIR: temporary, ...env }, log },
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
      if (test.status === "failed") failures.push(`${label}: ${test.fullName}${reason(test)}`);
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

/** The beginning of what went wrong, so that the end of the output is enough to begin with. */
function reason({ failureMessages = [] }) {
  const said = failureMessages.join("\n").split("\n").slice(0, 12);
  return said.map((line) => `\n    ${line.slice(0, 400)}`).join("");
}

function count(label, passed, failed) {
  total.passed += passed;
  total.failed += failed;
  if (failed > 0) failures.push(label);
}

/** A directory in memory, where there is plenty of it and nobody has said where temporary files belong. */
function inMemory() {
  const [shared, gib] = ["/dev/shm", 2 ** 30];
  const TMPFS = 0x01021994;
  if (process.env.TMPDIR !== undefined || totalmem() < 8 * gib) return undefined;
  try {
    const { type, bavail, bsize } = statfsSync(shared);
    if (type !== TMPFS || bavail * bsize < 4 * gib) return undefined;
    const directory = mkdtempSync(join(shared, "aido"));
    // As every directory for temporary files: some tests are another user's.
    chmodSync(directory, 0o1777);
    return directory;
  } catch {
    return undefined;
  }
}

/** Tests that were ended in the middle may have something mounted there. */
function removeTemporary() {
  try {
    rmSync(temporary, { recursive: true, force: true });
  } catch (thrown) {
    count(`left behind: ${thrown.message}`, 0, 1);
  }
}

/** Each is given the file it prints to. */
const suites = {
  lint: async (log) => {
    const node = (label, ...args) => passes(label, process.execPath, args, log);
    await node("lint", "node_modules/@biomejs/biome/bin/biome", "check", ".");
    await node("types of the tests", "node_modules/typescript/bin/tsc", "-p", "tsconfig.test.json");
  },
  agent: (log) => vitest("agent", log),
  asan: async (log) => {
    if (!(await passes("asan build", "make", ["-s", "-C", "agent", "asan"], log))) return;
    const env = { AIDO_TEST_AGENT: join(process.cwd(), "agent/build/asan/aido-agent") };
    const files = ["supervisor", "tools", "connect", "launch"].map((name) => `agent/test/${name}`);
    await vitest("agent", log, { label: "agent-asan", env, files });
    // How the local driver calls the launcher: with all its options, and bubblewrap as the program.
    await vitest("local", log, { label: "local-asan", env, files: ["sandbox-survival.local.test.ts"] });
  },
  fuzz: (log) => passes("fuzz", "make", ["-s", "-C", "agent", "fuzz", `FUZZ_SECONDS=${FUZZ_SECONDS}`], log),
  unit: (log) => vitest("unit", log),
  docker: (log) => vitest("docker", log),
  local: (log) => vitest("local", log),
  hostile: (log) => vitest("hostile", log),
  e2e: (log) => vitest("e2e", log),
};

async function passes(label, command, args, log) {
  const code = await run(command, args, { log });
  count(label, code === 0 ? 1 : 0, code === 0 ? 0 : 1);
  return code === 0;
}

async function runSuite(name) {
  const reason = await missing[name]();
  if (reason !== undefined) {
    if (CI) {
      count(`${name}: ${reason}`, 0, 1);
    } else {
      console.error(`== ${name} skipped: ${reason}`);
      total.skipped += 1;
    }
    return;
  }
  console.error(`== ${name} begins`);
  const started = Date.now();
  // Of one suite everything is seen as it comes; of several each one's when it is over, together.
  const log = wanted.length > 1 ? join(scratch, `${name}.log`) : undefined;
  await suites[name](log);
  if (log !== undefined) process.stderr.write(readFileSync(log));
  console.error(`== ${name} took ${Math.round((Date.now() - started) / 1000)} s`);
}

/** Once: who asks again does not want to wait for what is put away. */
for (const signal of ["SIGINT", "SIGTERM"])
  process.once(signal, () => {
    isStopped = true;
    // Of SIGTERM vitest would end at once and leave its workers behind.
    for (const child of children) child.kill("SIGINT");
  });

const before = leftovers(temporary);
try {
  const waiting = [...wanted];
  if (wanted.some((name) => ON_ENGINE.includes(name))) void engineMissing();
  const lane = async () => {
    for (let name = await nextOf(waiting); name !== undefined; name = await nextOf(waiting))
      await runSuite(name);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  const left = leftovers(temporary).filter((item) => !before.includes(item));
  for (const item of left) failures.push(`left behind: ${item}`);
  count("leftovers", left.length === 0 ? 1 : 0, 0);
  total.failed += left.length;
} finally {
  if (engine !== undefined) {
    spawnSync("bash", ["scripts/test-engine.sh", "stop"], { stdio: ["ignore", "inherit", "inherit"] });
  }
  rmSync(scratch, { recursive: true, force: true });
  if (temporary !== tmpdir()) removeTemporary();
}

if (isStopped) count("stopped before the end", 0, 1);
for (const failure of failures) console.log(`FAILED ${failure}`);
if (total.skipped > 0) console.log(`${total.skipped} skipped`);
console.log(`${total.passed} passed, ${total.failed} failed`);
// Not process.exit: what a pipe has not taken yet would be lost.
process.exitCode = total.failed === 0 && total.passed > 0 ? 0 : 1;
