import {
  toWorkflowConfig,
  type WorkflowCreateRequest,
  type WorkflowInfo,
  type WorkflowRunInfo,
} from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { fakeBackend } from "../testing/fake-backend.ts";
import { fakeContext } from "../testing/fake-context.ts";
import {
  cancelWorkflow,
  createWorkflow,
  listWorkflowRuns,
  listWorkflows,
  triggerWorkflow,
} from "./workflow.ts";

const task = {
  success: true,
  result: "fine\n",
  error: "",
  traceId: "",
  durationMs: 1,
  inputTokens: 0,
  outputTokens: 0,
  sessionId: "",
};
const info: WorkflowInfo = {
  id: 3,
  name: "nightly",
  trigger: { type: "cron", cron: "0 30 3 * * *", timezone: "UTC", missed: "run", overlap: "skip" },
  steps: [],
  sandboxId: undefined,
  sandboxConfigJson: "{}",
  active: true,
  runId: undefined,
  failures: 2,
  createdAt: new Date("2025-12-31T00:00:00Z"),
  updatedAt: new Date("2025-12-31T00:00:00Z"),
  lastRunAt: undefined,
  nextRunAt: new Date("2026-01-01T03:30:00Z"),
};
const run: WorkflowRunInfo = {
  id: "run-1",
  workflowId: 3,
  trigger: "cron",
  state: "done",
  scheduledFor: undefined,
  startedAt: new Date("2025-12-31T23:00:00Z"),
  endedAt: undefined,
  sandboxId: "box",
  steps: [],
  task: { ...task, result: "\u001b[31mfirst\nsecond" },
  error: undefined,
  evidence: undefined,
};

function bed(success = true) {
  const asked: WorkflowCreateRequest[] = [];
  const listed: unknown[] = [];
  const backend = fakeBackend({
    workflows: {
      create: async (request) => {
        asked.push(request);
        const nextRunAt = "2026-01-01T03:30:00.000Z";
        return { workflowId: 3, status: "active", nextRunAt, config: toWorkflowConfig(info) };
      },
      list: async (options) => {
        listed.push(options);
        return [info];
      },
      runs: async () => [run],
      cancel: async (workflowId) => ({ workflowId, status: "canceled" }),
      trigger: async () => ({ task: { ...task, success, error: "bad" } }) as never,
    },
  });
  return { asked, listed, context: fakeContext({ backend }) };
}

test("S2-41 S2-101 commands become steps, and a schedule has its policies", async () => {
  const { asked, context } = bed();
  const options = { command: ["a", "b"], cron: "0 30 3 * * *", timezone: "Europe/Berlin", overlap: "queue" };
  expect(await createWorkflow(context, "nightly", { ...options, set: ["stack=python"] })).toBe(0);
  const [request] = asked;
  expect(request).toMatchObject({ name: "nightly", triggerType: "cron" });
  expect(JSON.parse(request?.workflowJson ?? "")).toEqual({ steps: [{ command: "a" }, { command: "b" }] });
  expect(JSON.parse(request?.triggerConfig ?? "")).toEqual({
    cron: "0 30 3 * * *",
    timezone: "Europe/Berlin",
    overlap: "queue",
  });
  expect(JSON.parse(request?.sandboxConfigJson ?? "")).toEqual({ stack: "python" });
  expect(context.stdout.text).toBe("Workflow 3 is active, next run 2026-01-01T03:30:00.000Z\n");
});

test("S2-77 a prompt has the keys of workflow_json", async () => {
  const { asked, context } = bed();
  const options = { prompt: "go", sandbox: "web", token: "t", maxTurns: "7", timeout: "2m", model: "m" };
  await createWorkflow(context, "n", options);
  expect(JSON.parse(asked[0]?.workflowJson ?? "")).toEqual({
    prompt: "go",
    sidecar_url: "web",
    sidecar_token: "t",
    max_turns: 7,
    timeout_ms: 120_000,
    model: "m",
  });
});

test.each([{}, { prompt: "a", command: ["b"] }, { prompt: "a", timezone: "UTC" }])(
  "S2-101 %j is refused before anything is opened",
  async (options) => {
    const { asked, context } = bed();
    await expect(createWorkflow(context, "n", options)).rejects.toMatchObject({ code: "VALIDATION_ERROR" });
    expect(asked).toEqual([]);
  },
);

test("S2-42 trigger prints what the last step said, and a failure is exit 1", async () => {
  const good = bed();
  expect(await triggerWorkflow(good.context, "3")).toBe(0);
  expect(good.context.stdout.text).toBe("fine\n");
  const bad = bed(false);
  expect(await triggerWorkflow(bad.context, "3")).toBe(1);
  expect(bad.context.stdout.text).toBe("bad\n");
  await expect(triggerWorkflow(good.context, "x")).rejects.toMatchObject({ code: "VALIDATION_ERROR" });
});

test("S2-75 list --active leaves out those that were cancelled", async () => {
  const { context, listed } = bed();
  await listWorkflows(context, { active: true });
  await listWorkflows(context);
  expect(listed).toEqual([{ activeOnly: true }, { activeOnly: false }]);
});

test("S2-43 list, runs and cancel", async () => {
  const { context } = bed();
  expect(await listWorkflows(context)).toBe(0);
  expect(context.stdout.text).toMatch(/3 +nightly +0 30 3 \* \* \* UTC +active +2/);
  expect(await listWorkflowRuns(context, "3", {})).toBe(0);
  expect(context.stdout.text).toMatch(/run-1 +cron +done/);
  expect(context.stdout.text).not.toContain("\u001b[31m");
  expect(await cancelWorkflow(context, "3")).toBe(0);
  expect(context.stdout.text).toContain("Workflow 3 is cancelled\n");
});
