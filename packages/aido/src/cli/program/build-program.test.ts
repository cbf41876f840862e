import { expect, test } from "vitest";
import { buildProgram } from "./build-program.ts";

const names = (argv: readonly string[]) =>
  buildProgram("0.0.0", () => Promise.resolve(), argv).commands.map((command) => command.name());

test.each([
  [["run", "task.py"], "run"],
  [["--driver", "local", "-q", "run", "task.py"], "run"],
  [["--driver=local", "exec", "box", "--", "ls"], "exec"],
])("%j declares no other commands than it needs", (argv, command) => {
  expect(names(argv)).toContain(command);
  expect(names(argv)).not.toContain("serve");
});

test.each([
  [[]],
  [["--help"]],
  [["help", "run"]],
  [["--data-dir", "run", "ls"]],
  [["rum"]],
  [["completion", "bash"]],
])("%j may need all commands", (argv) => {
  expect(names(argv)).toEqual(expect.arrayContaining(["run", "exec", "serve", "swarm"]));
});

test("a command that is declared alone is the same as among all", () => {
  const all = buildProgram("0.0.0", () => Promise.resolve());
  for (const name of ["run", "exec"]) {
    const alone = buildProgram("0.0.0", () => Promise.resolve(), [name]);
    const help = (program: typeof all) =>
      program.commands.find((command) => command.name() === name)?.helpInformation();
    expect(help(alone)).toBe(help(all));
  }
});
