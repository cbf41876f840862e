import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const SCRIPT = new URL("../../../../../../images/swarm-base/install-dependencies", import.meta.url).pathname;

interface Ran {
  readonly code: number;
  readonly stdout: string;
}

/** The real script in a project of these files, with programs that say what they are told to instead of working. */
async function install(
  files: Readonly<Record<string, string>>,
  programs: Readonly<Record<string, string>>,
  ...found: readonly string[]
): Promise<Ran> {
  const directory = mkdtempSync(join(tmpdir(), "aido-install-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const [workspace, bin] = [join(directory, "workspace"), join(directory, "bin")];
  for (const made of [workspace, bin]) mkdirSync(made);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(workspace, name), text);
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  const env = { PATH: `${bin}:/usr/bin:/bin`, HOME: directory, AIMI_WORKSPACE: workspace };
  return await new Promise((resolve) => {
    const child = execFile("sh", [SCRIPT, ...found], { env }, (_, stdout) => {
      resolve({ code: child.exitCode ?? -1, stdout });
    });
  });
}

const says = (version: string) =>
  `case "$*" in *version*|*VERSION*) echo "${version}" ;; *) echo "did $*" ;; esac`;
const LOCK_V4 = 'version = 4\n\n[[package]]\nname = "shop"\nversion = "0.1.0"\n';
const BERRY = "__metadata:\n  version: 8\n";

test.each([
  ["npm:package-lock.json", {}, { npm: says("10.9.9") }, "did ci"],
  ["pnpm:pnpm-lock.yaml", {}, { pnpm: says("9.15.9") }, "did install --frozen-lockfile"],
  [
    "yarn:yarn.lock",
    { "yarn.lock": "# yarn lockfile v1\n", "package.json": '{"packageManager":"yarn@1.22.22"}' },
    { yarn: says("1.22.22") },
    "did install --frozen-lockfile --non-interactive",
  ],
  [
    "yarn:yarn.lock",
    { "yarn.lock": BERRY, "package.json": "{}" },
    { yarn: says("4.9.1") },
    "did install --immutable",
  ],
  [
    "cargo:Cargo.lock",
    { "Cargo.lock": LOCK_V4 },
    { cargo: says("cargo 1.85.0 (d73d2caf9 2024-12-31)") },
    "did fetch --locked",
  ],
  [
    "cargo:Cargo.lock",
    { "Cargo.lock": LOCK_V4.replace("4", "3") },
    { cargo: says("cargo 1.63.0") },
    "did fetch --locked",
  ],
  ["go:go.sum", { "go.mod": "module shop\n\ngo 1.19\n" }, { go: says("go1.19.8") }, "did mod download"],
  ["go:go.sum", { "go.mod": "module shop\n\ngo 1.25.1\n" }, { go: says("go1.24.4") }, "did mod download"],
])("S1-14 %s is installed where the image's own tools can %#", async (found, files, programs, told) => {
  const { code, stdout } = await install(files, programs, found);
  expect({ code, said: stdout.split("\n")[1] }).toEqual({ code: 0, said: expect.stringContaining(told) });
});

test.each([
  [
    "yarn:yarn.lock",
    { "yarn.lock": "", "package.json": '{ "packageManager": "yarn@4.9.1" }' },
    { yarn: "echo 'defines packageManager' >&2; exit 1" },
    "yarn from version 2 on",
    "corepack enable",
  ],
  [
    "yarn:yarn.lock",
    { "yarn.lock": BERRY, "package.json": "{}" },
    { yarn: says("1.22.22") },
    "yarn from version 2 on",
    "corepack enable",
  ],
  [
    "cargo:Cargo.lock",
    { "Cargo.lock": LOCK_V4 },
    { cargo: says("cargo 1.63.0") },
    "cargo 1.63.0 does not know version 4 of Cargo.lock",
    "static.rust-lang.org",
  ],
  [
    "go:go.sum",
    { "go.mod": "module shop\n\ngo 1.21.0\n" },
    { go: says("go1.19.8") },
    "go 1.19.8 is older than the 1.21.0",
    "go.dev/dl",
  ],
  [
    "pnpm:pnpm-lock.yaml",
    {},
    { pnpm: '[ "$1" = --version ] && echo 9.15.9 || exit 1' },
    "pnpm 9.15.9 did not install",
    "pnpm@latest",
  ],
  [
    "npm:package-lock.json",
    {},
    { npm: "exit 1" },
    "`npm ci --no-audit --no-fund` failed for package-lock.json",
    "apt-get install",
  ],
])(
  "S1-14 %s that the image's tools cannot install says what its Dockerfile needs %#",
  async (found, files, programs, told, how) => {
    const { code, stdout } = await install(files, programs, found);
    expect(code).toBe(3);
    const lines = stdout.split("\n").filter((line) => line.startsWith("aimi: "));
    expect(lines[0]).toContain(told);
    expect(lines).toContain("aimi: FROM aimi-sandbox:base");
    expect(lines.find((line) => line.startsWith("aimi: RUN "))).toContain(how);
    expect(lines.at(-1)).toBe(`aimi: RUN ["/opt/aimi/install-dependencies", "${found}"]`);
  },
);
