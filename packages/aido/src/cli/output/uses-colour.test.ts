import { expect, test } from "vitest";
import { MemorySink } from "./memory-sink.ts";
import { usesColour } from "./uses-colour.ts";

test.each([
  [{ TERM: "xterm" }, 80, true],
  [{ TERM: "xterm" }, undefined, false],
  [{ TERM: "dumb" }, 80, false],
  [{ TERM: "xterm", NO_COLOR: "1" }, 80, false],
  [{ TERM: "xterm", NO_COLOR: "" }, 80, true],
  [{ FORCE_COLOR: "1" }, undefined, true],
  [{ FORCE_COLOR: "0", TERM: "xterm" }, 80, false],
  [{ FORCE_COLOR: "1", NO_COLOR: "1" }, 80, false],
])("with %j and %s columns colours are used: %s", (env, columns, wanted) => {
  expect(usesColour(env, new MemorySink(columns))).toBe(wanted);
});
