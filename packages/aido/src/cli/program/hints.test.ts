import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { buildProgram } from "./build-program.ts";

const SOURCES = new URL("../../", import.meta.url).pathname;
const MENTION = /`aido ([a-z]+(?:-[a-z]+)*)(?: ([a-z][a-z-]*))?/g;

test("every command that a message tells users to type exists", () => {
  const program = buildProgram("0.0.0", () => Promise.resolve());
  const unknown: string[] = [];
  for (const file of sourceFiles()) {
    for (const [mention, first = "", second = ""] of readFileSync(file, "utf8").matchAll(MENTION)) {
      if (!exists(program, first, second)) unknown.push(`${file.slice(SOURCES.length)}: ${mention}`);
    }
  }
  expect(unknown).toEqual([]);
});

function exists(program: Command, first: string, second: string): boolean {
  const command = find(program, first);
  if (command === undefined) return false;
  // What takes arguments may be followed by any word.
  const isGroup = command.commands.length > 0 && command.name() !== "evidence";
  return !isGroup || second === "" || find(command, second) !== undefined;
}

function find(command: Command, name: string): Command | undefined {
  return command.commands.find((child) => child.name() === name || child.aliases().includes(name));
}

function sourceFiles(): string[] {
  return (
    (readdirSync(SOURCES, { recursive: true }) as string[])
      // The server's keys are managed by whoever runs it, not from this command line.
      .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
      .filter((name) => !name.startsWith("http/") && !name.includes("/testing/"))
      .map((name) => join(SOURCES, name))
  );
}
