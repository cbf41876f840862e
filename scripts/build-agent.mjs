// Puts the supervisor where the product looks for it: built from source when musl-gcc is there, prebuilt otherwise.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const agent = join(root, "agent");
const target = join(root, "packages/aido/dist/aido-agent");

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

const canRun = (program) => spawnSync(program, ["--version"], { stdio: "ignore" }).status === 0;

function fromSource() {
  // make itself skips what has not changed.
  const made = spawnSync("make", ["--silent", "-C", agent], { encoding: "utf8" });
  if (made.status !== 0) fail(`The supervisor does not build:\n${made.stdout}${made.stderr}`);
  return readFileSync(join(agent, "build/aido-agent"));
}

function prebuilt() {
  const name = `aido-agent-linux-${process.arch}`;
  const path = join(agent, "prebuilt", name);
  if (!existsSync(path))
    fail(
      `There is no prebuilt supervisor for ${process.arch}. Install musl-tools and make, then build again.`,
    );
  const bytes = readFileSync(path);
  const sums = readFileSync(join(agent, "prebuilt/SHA256SUMS"), "utf8");
  const expected = sums
    .split("\n")
    .find((line) => line.endsWith(`  ${name}`))
    ?.slice(0, 64);
  if (createHash("sha256").update(bytes).digest("hex") !== expected)
    fail(
      `agent/prebuilt/${name} does not match agent/prebuilt/SHA256SUMS. Restore it with: git checkout -- agent/prebuilt`,
    );
  return bytes;
}

const bytes = canRun("musl-gcc") && canRun("make") ? fromSource() : prebuilt();
if (!existsSync(target) || !readFileSync(target).equals(bytes)) {
  // A running supervisor keeps the file it was started from.
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(`${target}.new`, bytes);
  chmodSync(`${target}.new`, 0o755);
  renameSync(`${target}.new`, target);
}
