import { execFile } from "node:child_process";
import { mkdir, readdir } from "node:fs/promises";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { MAIN } from "./aido-process.ts";
import { Project } from "./project.ts";

const spec = (...lines: string[]) => ["name: demo", "runtime: bash", ...lines].join("\n");

test.each([
  ["broken YAML", spec("ttl: [5m"), /sandbox\.yaml:\d+:\d+: .*/],
  ["a tab for a space", spec("ttl: 5m", "resources:", "\tcpus: 1"), /sandbox\.yaml:\d+:\d+: /],
  ["an unknown key", spec("tttl: 5m"), /sandbox\.yaml:3:1: unknown key "tttl".*Did you mean ttl\?/],
  ["no ttl at all", spec(), /ttl is missing/],
  ["a ttl of nothing", spec("ttl: 0s"), /sandbox\.yaml:3:6: ttl must be more than zero/],
  ["a ttl without a unit", spec("ttl: 0"), /sandbox\.yaml:3:6: ttl is not a duration/],
  ["a ttl of another unit", spec("ttl: 5x"), /sandbox\.yaml:3:6: ttl is not a duration \(found: 5x\)/],
  ["a ttl of ages", spec("ttl: 99999999h"), /sandbox\.yaml:3:6: ttl /],
  [
    "a pattern that matches nothing",
    spec("ttl: 5m", "inputs: ['none/*.csv']"),
    /No file matches.*none\/\*\.csv/,
  ],
  [
    "a pattern that leaves the project",
    spec("ttl: 5m", "inputs: ['../*']"),
    /:4:10: inputs\[0\] leads out of the project/,
  ],
  ["an absolute pattern", spec("ttl: 5m", "inputs: [/etc/passwd]"), /inputs\[0\] leads out of the project/],
  ["a name with an escape in it", '{name: "a\\e[2Jb", runtime: bash, ttl: 5m}', /name/],
])("S0-84 a spec with %s is refused, and the line or the fix is named", async (_what, text, told) => {
  await using project = await Project.make("local", { "sandbox.yaml": text });
  const outcome = await project.aido(["sandbox", "up"]);
  expect(outcome).toMatchObject({ code: 2, stdout: "" });
  expect(outcome.stderr).toMatch(told);
  expect(outcome.stderr).toMatch(/^hint: /m);
  expect(outcome.stderr).not.toContain("\u001b");
  expect(await project.json(["ls"])).toEqual([]);
});

test("S0-40 a task that is a directory is refused before anything is made", async () => {
  await using project = await Project.make();
  await mkdir(project.path("d.py"));
  expect(await project.aido(["run", "d.py"])).toMatchObject({
    code: 125,
    stdout: "",
    stderr: expect.stringMatching(/d\.py is not a file\nhint: /),
  });
  expect(await project.json(["ls"])).toEqual([]);
});

test("a name with a path, a line break, an emoji or an escape is refused", async () => {
  await using project = await Project.make();
  for (const name of ["../x", "..", "a/b", "a\nb", "🚀", "\u001b[31m", "a b", ""]) {
    const outcome = await project.aido(["create", "--image", "host", `--name=${name}`]);
    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(outcome.stderr).toMatch(/^aido: The name ".*" cannot be used/);
    expect(outcome.stderr).not.toContain("\u001b");
  }
  expect(await project.json(["ls"])).toEqual([]);
});

test.each([
  ["local", [4]],
  // Not there, or no registry to ask.
  ["docker", [4, 8]],
] as const)("on %s an image that does not exist is named, and nothing is left", async (driver, codes) => {
  await using project = await Project.make(driver);
  const outcome = await project.aido(["create", "--image", "aido.invalid/no-such:1"]);
  expect(codes).toContain(outcome.code);
  expect(outcome.stderr).toMatch(/aido\.invalid\/no-such:1.*\nhint: /s);
  expect(await project.json(["ls"])).toEqual([]);
  expect(await readdir(project.path(".aido", "sandboxes")).catch(() => [])).toEqual([]);
});

test("arguments beyond the limit are refused with another way", async () => {
  await using project = await Project.make();
  const id = await project.create();
  const argv = Array.from({ length: 12 }, () => "x".repeat(100_000));
  const outcome = await project.aido(["exec", id, "--", "true", ...argv]);
  expect(outcome).toMatchObject({ code: 125, stdout: "" });
  expect(outcome.stderr).toMatch(/over the limit of \d+\nhint: .*standard input/);
  expect((await project.ok(["exec", id, "--", "echo", ...argv.slice(0, 5)])).stdout).toHaveLength(500_005);
});

test("2 GiB of output pass through with flat memory", async () => {
  await using project = await Project.make();
  const id = await project.create();
  const size = 2 * 1024 ** 3;
  await using running = project.start(["exec", id, "--", "head", "-c", String(size), "/dev/zero"]);
  running.child.stdout.removeAllListeners("data");
  let bytes = 0;
  let most = 0;
  for await (const chunk of running.child.stdout) {
    const before = bytes;
    bytes += (chunk as Buffer).length;
    if (before >> 26 !== bytes >> 26) most = Math.max(most, await residentBytes(running.child.pid ?? 0));
  }
  expect(bytes).toBe(size);
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThan(250 * 1024 ** 2);
  expect(await running.end()).toMatchObject({ code: 0 });
});

async function residentBytes(pid: number): Promise<number> {
  const { readFile } = await import("node:fs/promises");
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024;
}

test("an output whose name is not UTF-8 does not keep the others from being copied", async () => {
  await using project = await Project.make("local", {
    "t.sh": "cd /outputs; echo fine > fine; echo odd > \"$(printf 'a\\377')\"",
  });
  await project.ok(["run", "--image", "host", "t.sh"]);
  const { stderr } = await project.ok(["outputs", "--to", "copies"]);
  expect(stderr).toMatch(/left out: its name is not UTF-8/);
  expect(await readdir(project.path("copies"))).toEqual(["fine"]);
});

test("a current directory that was removed is told as that", async () => {
  await using project = await Project.make();
  const command = `mkdir gone && cd gone && rmdir ../gone && exec "$0" "$1" ls`;
  const { execPath } = process;
  const failed = promisify(execFile)("sh", ["-c", command, execPath, MAIN], { cwd: project.directory });
  await expect(failed).rejects.toMatchObject({
    code: 125,
    stderr: expect.stringMatching(/^aido: The current directory is gone\nhint: .*\n$/m),
  });
});
