import { describe, expect, test } from "vitest";
import { toWorkerState } from "./worker-status.ts";

const state = (nativeState: string, exitCode?: number) =>
  toWorkerState({ state: "exited", nativeState, exitCode }, true);

describe("S1-69 what the engine says of a container is, in a swarm,", () => {
  test.each([
    ["created", undefined, "pending"],
    ["running", undefined, "running"],
    ["restarting", undefined, "running"],
    ["paused", undefined, "stopped"],
    ["removing", undefined, "stopped"],
    ["exited", 0, "completed"],
    ["exited", 1, "failed"],
    ["exited", 137, "failed"],
    ["dead", 0, "failed"],
    ["something new", undefined, "failed"],
  ])("%s with code %s: %s", (native, exitCode, expected) => expect(state(native, exitCode)).toBe(expected));

  test("without an adapter: waiting while it runs, and nothing completed when it was shut down", () => {
    const before = (nativeState: string, exitCode?: number) =>
      toWorkerState({ state: "running", nativeState, exitCode }, false);
    expect(before("running")).toBe("pending");
    expect(before("exited", 0)).toBe("stopped");
    expect(before("exited", 125)).toBe("failed");
  });
});
