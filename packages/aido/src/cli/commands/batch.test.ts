import type { Batches } from "@aido/sdk";
import type { BatchInfo } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { MemorySink } from "../output/memory-sink.ts";
import { ProgressLine } from "../output/progress-line.ts";
import { fakeBackend, sandboxInfo } from "../testing/fake-backend.ts";
import { fakeContext } from "../testing/fake-context.ts";
import { batchCollect, batchCreate, batchExec, batchTask, listBatches } from "./batch.ts";
import { BatchProgress } from "./batch-progress.ts";

function bed(result: object) {
  const asked: [string, Record<string, unknown>][] = [];
  const run = async (job: string, request: Record<string, unknown>) => {
    asked.push([job, request]);
    return { batchId: request["batchId"], ...result };
  };
  const labelled = ["b", "a"].map((id) => sandboxInfo({ id }));
  const backend = fakeBackend({
    jobs: { run: run as never },
    batches: { get: () => Promise.reject(new Error("none")), list: async () => [info(2)] },
    sandboxes: { list: async () => labelled },
  });
  return { asked, context: fakeContext({ backend }) };
}

const info = (ended: number): BatchInfo => ({
  id: "batch-1",
  kind: "exec",
  state: "running",
  count: 50,
  ended,
  failed: ended > 1 ? 1 : 0,
  createdAt: new Date("2025-12-31T23:59:00Z"),
  endedAt: undefined,
  expiresAt: new Date("2026-01-02T00:00:00Z"),
});

test("S2-31 sandboxes are made by fields, and their tokens are shown", async () => {
  const token = "f".repeat(64);
  const sandboxes = [{ sandboxId: "sandbox-1", sidecarUrl: "u", token, sshPort: null }];
  const { asked, context } = bed({ sandboxes });
  expect(await batchCreate(context, "1", ["stack=python"])).toBe(0);
  expect(asked).toMatchObject([["BATCH_CREATE", { count: 1, templateRequest: { stack: "python" } }]]);
  expect(context.stdout.text).toContain(token);
});

test.each(["0", "51", "x", "1.5"])(
  "S2-31 %s sandboxes are refused before anything is opened",
  async (count) => {
    const { asked, context } = bed({});
    await expect(batchCreate(context, count, [])).rejects.toMatchObject({ code: "VALIDATION_ERROR" });
    expect(asked).toEqual([]);
  },
);

test("S2-32 a command runs in those that are named, then in those with the label, and a failure is exit 1", async () => {
  const execResults = [
    { sidecarUrl: "http://h/sidecar/web", exitCode: 0, stdout: "\u001b[31mred\nline\n", stderr: "" },
    { sidecarUrl: "a", exitCode: 3, stdout: "", stderr: "bad\n" },
    { sidecarUrl: "b", error: { code: "X", message: "gone" } },
  ];
  const { asked, context } = bed({ execResults });
  const options = { sandbox: ["web"], label: ["team=x"], timeout: "5s", env: ["A=1"] };
  expect(await batchExec(context, "ls", options)).toBe(1);
  expect(asked[0]?.[1]).toMatchObject({
    sidecarUrls: ["web", "a", "b"],
    sidecarTokens: [],
    parallel: true,
    timeoutMs: 5000,
    command: "ls",
    envJson: { A: "1" },
    batchId: expect.stringMatching(/^batch-/),
  });
  expect(context.stdout.text).toContain("== 1 web\n\\x1b[31mred\nline\n== 2 a: exit 3\nbad\n== 3 b: gone\n");
});

test("S2-98 a task says what the answers come to", async () => {
  const aggregate = { aggregation: "majority", success: true, result: "42", from: [0] };
  const taskResults = [{ sidecarUrl: "a", success: true, result: "42", error: "" }];
  const { asked, context } = bed({ taskResults, aggregate });
  const options = { sandbox: ["a"], token: ["t"], aggregation: "majority", maxTurns: "3", sequential: true };
  expect(await batchTask(context, "think", options)).toBe(0);
  expect(asked[0]?.[1]).toMatchObject({
    sidecarTokens: ["t"],
    parallel: false,
    maxTurns: 3,
    aggregation: "majority",
  });
  expect(context.stdout.text).toContain("majority: 42\n");
});

test("S2-37 results are collected, and batches listed", async () => {
  const { asked, context } = bed({ kind: "exec", results: [] });
  expect(await batchCollect(context, "batch-1")).toBe(0);
  expect(asked).toEqual([["BATCH_COLLECT", { batchId: "batch-1" }]]);
  expect(await listBatches(context)).toBe(0);
  expect(context.stdout.text).toMatch(/batch-1 +exec +running +2\/50 +1/);
});

const CLEAR = "\r\u001b[K";

test.each([
  [
    "redraws one line on a terminal",
    80,
    `${CLEAR}batch exec: 1 of 50 done${CLEAR}batch exec: 2 of 50 done, 1 failed`,
  ],
  ["is plain lines elsewhere", undefined, "batch exec: 1 of 50 done\nbatch exec: 2 of 50 done, 1 failed\n"],
])("the progress of a batch %s", async (_, columns, shown) => {
  const stderr = new MemorySink(columns);
  const context = { ...fakeContext({ stderr }), progress: new ProgressLine(stderr, "redraw") };
  let looks = 0;
  const get = async () => {
    looks += 1;
    return info(looks);
  };
  const progress = new BatchProgress(context, { get } as unknown as Batches, "batch-1", 1);
  await expect.poll(() => looks).toBeGreaterThan(2);
  await progress.stop();
  expect(stderr.text.startsWith(shown)).toBe(true);
});
