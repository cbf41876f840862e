import type { BatchItem, TaskResult } from "@aido/sdk/protocol";
import { describe, expect, test } from "vitest";
import { aggregate } from "./aggregate.ts";
import { ownShare } from "./own-share.ts";

const A = `0x${"a".repeat(40)}`;
const B = `0x${"b".repeat(40)}`;
const C = `0x${"c".repeat(40)}`;

describe("the operators of a batch", () => {
  test.each([
    ["nobody is named", 7, [], "", A, 7],
    ["this machine has no address", 7, [A, B], "round_robin", undefined, 7],
    ["dealt out in turn, the first", 7, [A, B, C], "round_robin", A, 3],
    ["dealt out in turn, the second", 7, [A, B, C], "", B, 2],
    ["nothing is left for the last", 2, [A, B, C], "weighted", C, 0],
    ["each makes all", 7, [A, B], "all", B, 7],
    ["in other letters", 4, [A.toUpperCase().replace("0X", "0x"), B], "", A, 2],
  ])("S2-97 %s", (_, count, operators, distribution, self, share) => {
    expect(ownShare(count, { operators, distribution }, self)).toBe(share);
  });

  test.each([
    ["an address that is none", ["0x12"], A],
    ["one that is named twice", [A, A], A],
    ["others only", [B, C], A],
  ])("S2-97 %s: refused", (_, operators, self) => {
    const share = () => ownShare(1, { operators, distribution: "" }, self);
    expect(share).toThrow(expect.objectContaining({ code: "VALIDATION_ERROR" }));
  });
});

describe("the answers of a batch", () => {
  const task = (result: string, success = true): TaskResult => ({
    success,
    result,
    error: "",
    traceId: "",
    durationMs: 0,
    inputTokens: 0,
    outputTokens: 0,
    sessionId: "",
  });
  const failure: BatchItem<TaskResult> = { error: { code: "X", message: "y" } };

  test("S2-98 all are the answers themselves", () => {
    expect(aggregate("all", [task("a")])).toBeUndefined();
  });

  test("S2-98 the first that succeeded", () => {
    const items = [failure, task("no", false), task(" yes\n"), task("late")];
    expect(aggregate("first", items)).toEqual({
      aggregation: "first",
      success: true,
      result: "yes",
      from: [2],
    });
    expect(aggregate("first", [failure])).toEqual({
      aggregation: "first",
      success: false,
      result: "",
      from: [],
    });
  });

  test("S2-98 the majority is more than half of all that were asked", () => {
    expect(aggregate("majority", [task("a"), task("b"), task("a ")])).toEqual({
      aggregation: "majority",
      success: true,
      result: "a",
      from: [0, 2],
    });
    const half = [task("a"), task("a"), task("b"), failure];
    expect(aggregate("majority", half)).toMatchObject({ success: false, from: [] });
    expect(aggregate("majority", [task("a", false), task("a", false), task("b")])).toMatchObject({
      success: false,
    });
  });
});
