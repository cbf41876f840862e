import type { Command } from "commander";
import { expect, test } from "vitest";
import { buildProgram } from "./build-program.ts";
import { renderReference } from "./reference.ts";

const program = buildProgram("0.0.0", () => Promise.resolve());
const REFERENCE = new URL("../../../../../docs/reference/cli.md", import.meta.url).pathname;

test("docs/reference/cli.md says what the command line declares", async () => {
  await expect(renderReference(program)).toMatchFileSnapshot(REFERENCE);
});

test("every command that does something has an example in its help", () => {
  const without: string[] = [];
  const visit = (command: Command): void => {
    for (const child of command.commands) visit(child);
    if (command.commands.length > 0 || command === program) return;
    let help = "";
    command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
    if (!help.includes("$ aido") && !help.includes("aido completion")) without.push(command.name());
  };
  visit(program);
  expect(without).toEqual([]);
});

test("no option means two things: a command has none that is also global", () => {
  const globals = new Set(program.options.flatMap(({ long, short }) => [long, short]));
  const clashes: string[] = [];
  const visit = (command: Command): void => {
    for (const { long, short } of command.options) {
      for (const name of [long, short])
        if (name && globals.has(name)) clashes.push(`${command.name()} ${name}`);
    }
    for (const child of command.commands) visit(child);
  };
  for (const child of program.commands) visit(child);
  expect(clashes).toEqual([]);
});
