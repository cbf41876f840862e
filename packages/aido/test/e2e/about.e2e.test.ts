import { appendFile, readFile, writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { Project } from "./project.ts";

test("--version is the package's version", async () => {
  await using project = await Project.make();
  const { version } = JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8"));
  expect(await project.aido(["--version"])).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: "" });
});

test("a usage error exits with 2 and the nearest command is suggested", async () => {
  await using project = await Project.make();
  expect(await project.aido(["sandbx"])).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringContaining("sandbox"),
  });
});

test("doctor says what this machine can do", async () => {
  await using project = await Project.make();
  const report = await project.json<{ ok: boolean; checks: { name: string; status: string }[] }>(["doctor"]);
  expect(report.ok).toBe(true);
  expect(report.checks.length).toBeGreaterThan(2);
  expect((await project.ok(["doctor"])).stdout).toContain("local");
});

test("config show says every value and where it came from", async () => {
  await using project = await Project.make();
  const settings = await project.json<{ key: string; value: unknown; source: string }[]>(["config", "show"]);
  expect(settings.find(({ key }) => key === "driver")).toMatchObject({ value: "local" });
});

test("completion prints a script that bash accepts", async () => {
  await using project = await Project.make();
  expect((await project.ok(["completion", "bash"])).stdout).toContain("complete -o default -F _aido aido");
});

test("evidence is shown, verified, kept after destroy, and a changed line is found", async () => {
  await using project = await Project.make("local", { "t.sh": "echo hi" });
  await project.ok(["run", "t.sh"]);
  const [sandbox] = await project.json<{ id: string }[]>(["ls"]);
  const id = sandbox?.id ?? "";
  expect((await project.ok(["evidence", id])).stdout).toContain("run.completed");
  await project.ok(["rm", id]);
  const lines = (await project.ok(["evidence", id, "--json"])).stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines.map(({ seq }) => seq)).toEqual(lines.map((_, index) => lines[0].seq + index));
  expect(await project.aido(["evidence", "verify"])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("ok"),
  });

  const path = project.path(".aido", "evidence", `${id}.log`);
  const whole = await readFile(path, "utf8");
  await writeFile(path, whole.replace("run.completed", "run.forgotten"));
  const broken = await project.aido(["evidence", "verify", id]);
  expect(broken).toMatchObject({ code: 5, stdout: expect.stringContaining("BROKEN") });
  expect(await project.aido(["evidence", "verify", id, "--json"])).toMatchObject({
    code: 5,
    stdout: expect.stringContaining('"ok": false'),
  });
  await writeFile(path, whole);
  await appendFile(path, `${whole.trimEnd().split("\n").at(-1)}\n`);
  expect(await project.aido(["evidence", "verify", id])).toMatchObject({ code: 5 });
  await writeFile(path, whole);
  expect(await project.aido(["evidence", "verify", id])).toMatchObject({ code: 0 });
});

test("evidence of a sandbox that is there is found by its name", async () => {
  await using project = await Project.make();
  await project.create("--name", "web");
  expect((await project.ok(["evidence", "web"])).stdout).toContain("sandbox.created");
  expect(await project.aido(["evidence", "never1was"])).toMatchObject({ code: 4 });
});

test("a server is refused with what to do until it can be used", async () => {
  await using project = await Project.make();
  const outcome = await project.aido(["ls"], { env: { AIDO_URL: "http://127.0.0.1:1" } });
  expect(outcome.code).not.toBe(0);
  expect(outcome.stderr).toContain("hint:");
});
