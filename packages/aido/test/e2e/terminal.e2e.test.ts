import { expect, test } from "vitest";
import { Project } from "./project.ts";
import { onTerminal } from "./terminal.ts";

test.each(["local", "docker"])(
  "a shell on %s is a real terminal: size, resize, Ctrl-C, exit code",
  async (driver) => {
    await using project = await Project.make(driver);
    const id = await project.create();
    const outcome = await onTerminal(
      project,
      ["shell", id, "--shell", "/bin/sh"],
      [
        { send: "stty size; test -t 0 && echo is-$((1))-tty\n" },
        { expect: "24 80" },
        { expect: "is-1-tty" },
        { resize: [40, 100] },
        { send: "sleep 0.3; stty size\n" },
        { expect: "40 100" },
        { send: "sh -c 'echo sleeps-$((2+3)); exec sleep 60'\n" },
        { expect: "sleeps-5" },
        { send: "\u0003" },
        { send: "echo after-$((1+1))\n" },
        { expect: "after-2" },
        { send: "exit 6\n" },
      ],
    );
    expect(outcome).toMatchObject({ failure: null, code: 6, restored: true });
  },
);

test("exec -t runs one command on a terminal", async () => {
  await using project = await Project.make();
  const id = await project.create();
  const outcome = await onTerminal(
    project,
    ["exec", "-it", id, "--", "sh", "-c", "read x; echo got-$x; exit 3"],
    [{ send: "hello\n" }, { expect: "got-hello" }],
  );
  expect(outcome).toMatchObject({ failure: null, code: 3, restored: true });
});

test("what a command writes reaches the terminal as it is, line feeds too", async () => {
  await using project = await Project.make();
  const id = await project.create();
  const command = "stty -opost; printf 'left\\ndown\\r\\nend'";
  const outcome = await onTerminal(
    project,
    ["exec", "-it", id, "--", "sh", "-c", command],
    [{ expect: "end" }],
  );
  expect(outcome).toMatchObject({ failure: null, code: 0, restored: true });
  expect(outcome.output).toContain("left\ndown\r\nend");
});

test.each(["SIGTERM", "SIGHUP"] as const)("the terminal is put back when %s ends aido", async (signal) => {
  await using project = await Project.make();
  const id = await project.create();
  const outcome = await onTerminal(
    project,
    ["shell", id, "--shell", "/bin/sh"],
    [{ send: "echo ready-$((1))\n" }, { expect: "ready-1" }, { signal }],
  );
  expect(outcome).toMatchObject({ failure: null, restored: true });
});

test("the terminal is put back when the sandbox goes away", async () => {
  await using project = await Project.make();
  const id = await project.create("--ttl", "4s");
  const outcome = await onTerminal(
    project,
    ["shell", id, "--shell", "/bin/sh"],
    [{ send: "echo ready-$((1))\n" }, { expect: "ready-1" }],
  );
  expect(outcome).toMatchObject({ failure: null, restored: true });
  expect(outcome.code).not.toBe(0);
});

test("a shell without a terminal is refused with what to write instead", async () => {
  await using project = await Project.make();
  const id = await project.create();
  expect(await project.aido(["shell", id])).toMatchObject({
    code: 125,
    stderr: expect.stringContaining("exec -i"),
  });
});

test("tables fit the terminal, and text from sandboxes cannot act on it", async () => {
  await using project = await Project.make();
  const name = "a-name-that-is-rather-long-for-a-narrow-terminal-to-show";
  await project.create("--name", name, "--label", "x=\u202egnp.exe");
  const list = await onTerminal(project, ["ls", "--verbose"], [{ expect: "ID" }]);
  expect(list).toMatchObject({ failure: null, code: 0, restored: true });
  expect(list.output).not.toContain("\u202e");
  expect(list.output).toContain("…");
  await project.ok(["exec", name, "true", "\u001b[2J\u0007"]);
  const execs = await onTerminal(project, ["ps", name], [{ expect: "EXEC" }]);
  expect(execs.output).not.toContain("\u001b[2J");
  expect(execs.output).toContain("\\x1b[2J");
});
