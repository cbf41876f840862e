import { expect, test } from "vitest";
import { agents } from "./agent-settings.ts";

test("agents are read from an object and from its JSON, and their variables are never printed", () => {
  const written = { mine: { kind: "command", argv: ["a", ["--m", "{model}"]], env: { KEY: "hush" } } };
  for (const value of [written, JSON.stringify(written)]) {
    const read = agents.read(value);
    expect(read?.["mine"]).toMatchObject({ kind: "command", argv: written.mine.argv, permissions: "allow" });
    expect(read?.["mine"]?.env["KEY"]?.reveal()).toBe("hush");
    expect(JSON.stringify(read)).not.toContain("hush");
  }
  expect(agents.read({ c: { kind: "claude" } })?.["c"]).toMatchObject({ argv: undefined });
});

test.each([
  ["text", "agents"],
  ["a list", []],
  ["an unknown kind", { a: { kind: "magic", argv: ["a"] } }],
  ["no command", { a: { kind: "acp" } }],
  ["a command that may be left out", { a: { kind: "command", argv: [["{model}"]] } }],
  ["an unknown field", { a: { kind: "claude", args: [] } }],
  ["a bad identifier", { "../a": { kind: "claude" } }],
  ["a bad variable", { a: { kind: "claude", env: { "A=B": "x" } } }],
  ["a bad policy", { a: { kind: "claude", permissions: "maybe" } }],
])("%s is no agents", (_, value) => {
  expect(agents.read(value)).toBeUndefined();
});
