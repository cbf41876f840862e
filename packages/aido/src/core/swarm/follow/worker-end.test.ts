import { expect, test } from "vitest";
import type { WorkerRecord } from "../records/worker-record.ts";
import type { WorkerEnd } from "../workers/workers.ts";
import { endingOf } from "./worker-end.ts";

const ended = (exitCode: number | undefined, more: Partial<WorkerEnd> = {}): WorkerEnd => ({
  type: "end",
  exitCode,
  signal: undefined,
  outOfMemory: false,
  ...more,
});
const completion = (status: "completed" | "failed" | "stopped", errors: string[] = []) =>
  ({ status, prUrl: null, errors }) as const;

test.each<[number | undefined, WorkerRecord["last"], string]>([
  [0, completion("completed"), "completed"],
  [1, completion("completed"), "failed"],
  [undefined, completion("completed"), "failed"],
  [0, completion("failed"), "failed"],
  [130, completion("stopped"), "stopped"],
  [0, { code: "AGENT_CRASH", message: "it fell over" }, "failed"],
  [0, undefined, "failed"],
  [143, undefined, "stopped"],
])("S1-28 S1-29 S1-34 exit code %s with the last message %o is %s", (exitCode, last, status) => {
  expect(endingOf({ last }, ended(exitCode), undefined).status).toBe(status);
});

test("what the host decided goes over what a worker says, unless it completed before it was stopped", () => {
  const stop = { status: "stopped", reason: "Its budget is used up" } as const;
  expect(endingOf({ last: completion("completed") }, ended(0), stop).status).toBe("completed");
  expect(endingOf({ last: completion("failed") }, ended(1), stop)).toMatchObject(stop);
  const broken = { status: "failed", reason: "A message is wrong" } as const;
  expect(endingOf({ last: completion("completed") }, ended(0), broken)).toMatchObject(broken);
});

test("a container that ran out of memory or time says so by its code, where its worker could not", () => {
  const reason = (end: WorkerEnd, last?: WorkerRecord["last"]) => endingOf({ last }, end, undefined).reason;
  expect(reason(ended(137, { outOfMemory: true }))).toMatch(/^CONTAINER_OOM: /);
  expect(reason(ended(124, { timedOut: true }))).toMatch(/^CONTAINER_TIMEOUT: /);
  expect(reason(ended(137, { outOfMemory: true }), completion("failed", ["tests fail"]))).toBe("tests fail");
});
