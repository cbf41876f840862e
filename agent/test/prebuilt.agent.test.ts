import { execFile, execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { IS_CI } from "../../packages/aido/test/backends/is-ci.ts";

const AGENT = dirname(dirname(fileURLToPath(import.meta.url)));
/** The compiler that the committed binaries come from; another one gives other bytes. */
const COMPILER_VERSION = "12.2.0";

/** Elsewhere another compiler, or none, is no fault; in CI nothing is left out. */
function mayCompare(compiler: string): boolean {
  if (IS_CI) return true;
  try {
    return execFileSync(compiler, ["-dumpfullversion"], { encoding: "utf8" }).trim() === COMPILER_VERSION;
  } catch {
    return false;
  }
}

async function rebuilt(target: string, file: string): Promise<Buffer> {
  const directory = await mkdtemp(join(tmpdir(), "aido-agent-build-"));
  try {
    await promisify(execFile)("make", ["-C", AGENT, `BUILD=${directory}`, `${directory}/${target}`]);
    return await readFile(join(directory, file));
  } finally {
    await rm(directory, { recursive: true });
  }
}

const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

test("the prebuilt supervisors match their checksums and are no larger than 100 KB", async () => {
  const sums = await readFile(join(AGENT, "prebuilt/SHA256SUMS"), "utf8");
  for (const arch of ["x64", "arm64"]) {
    const name = `aido-agent-linux-${arch}`;
    const bytes = await readFile(join(AGENT, "prebuilt", name));
    expect(sums).toContain(`${sha256(bytes)}  ${name}\n`);
    expect(bytes.length).toBeLessThanOrEqual(100_000);
  }
});

test.skipIf(!mayCompare("musl-gcc"))(
  "the sources give the prebuilt x64 supervisor again, byte for byte (needs Debian 12's musl-tools)",
  async () => {
    const bytes = await readFile(join(AGENT, "prebuilt/aido-agent-linux-x64"));
    expect(sha256(await rebuilt("aido-agent", "aido-agent"))).toBe(sha256(bytes));
  },
);

test.skipIf(!mayCompare("aarch64-linux-gnu-gcc"))(
  "the sources give the prebuilt arm64 supervisor again, byte for byte (needs Debian 12's gcc-aarch64-linux-gnu)",
  async () => {
    const bytes = await readFile(join(AGENT, "prebuilt/aido-agent-linux-arm64"));
    expect(sha256(await rebuilt("aido-agent-arm64", "aido-agent-arm64"))).toBe(sha256(bytes));
  },
);
