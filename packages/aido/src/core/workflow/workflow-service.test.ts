import type { Execs, Sandboxes } from "@aido/sdk";
import { AidoError, type WorkflowCreateRequest } from "@aido/sdk/protocol";
import { parseCronTrigger, parseJob, parseWorkflow } from "@aido/sdk/schemas";
import { describe, expect, test } from "vitest";
import { HandClock } from "../../../test/exec/hand-clock.ts";
import { fakePresence } from "../../../test/processes/fake-presence.ts";
import { readCron } from "../../cron/croner-schedules.ts";
import { MemoryStore } from "../../stores/memory/memory-store.ts";
import { Activity } from "../activity/activity.ts";
import type { JobCaller } from "../job/job-caller.ts";
import type { JobAgents } from "../job/job-handler.ts";
import { WorkflowSandboxes } from "./workflow-sandboxes.ts";
import { WorkflowService } from "./workflow-service.ts";

const LOGGER = { debug() {}, info() {}, warn() {}, error() {}, child: () => LOGGER };
const MINUTE = 60_000;
const EVERY_MINUTE = "0 * * * * *";

type Answer = { success?: boolean; error?: string; response?: string };

/** Workflows whose agent is a function of the test's own. */
function bed({
  store = new MemoryStore(),
  clock = new HandClock(),
  self = "p1",
  dead = [] as string[],
  isGone = (): boolean => false,
  ask = async (_prompt: string, _signal: AbortSignal): Promise<Answer> => ({}),
} = {}) {
  const asked: unknown[] = [];
  const boxes = new Map<string, Readonly<Record<string, string>>>();
  const removed: string[] = [];
  const activity = new Activity({ sandboxes: store.sandboxes, clock, logger: LOGGER });
  const caller: JobCaller = {
    owner: "me",
    isOperator: false,
    isInternal: false,
    find: async (id) => {
      if (id.startsWith("box")) return { id };
      throw new AidoError("CONTAINER_NOT_FOUND", "none");
    },
    create: async ({ labels = {} }) => {
      const id = `box-${boxes.size + 1}`;
      boxes.set(id, labels);
      return { id } as never;
    },
  };
  const agents: JobAgents = {
    run: async (sandboxId, request, options) => {
      asked.push([sandboxId, request]);
      const {
        success = true,
        error,
        response = "42",
      } = await ask(request.message, options?.signal ?? new AbortController().signal);
      return {
        success,
        response,
        error,
        errorCode: undefined,
        traceId: "trace",
        durationMs: 7,
        usage: { inputTokens: 3, outputTokens: 5 },
        sessionId: "session-1",
      } as never;
    },
  };
  const sandboxes = {
    list: async ({ labels }: { labels: Record<string, string> }) => {
      if (isGone()) throw new AidoError("CONTAINER_LOST", "no engine");
      const [[name, value]] = Object.entries(labels) as [[string, string]];
      return [...boxes]
        .filter(([id, has]) => has[name] === value && !removed.includes(id))
        .map(([id]) => ({ id }));
    },
    destroy: async (id: string) => void removed.push(id),
  } as unknown as Pick<Sandboxes, "list" | "start" | "stop" | "destroy">;
  const tokens = {
    verify: async (_: string, token: string) => token === "right",
    hash: (token: string) => `#${token}`,
    verifyHash: async (_: string, hash: string) => hash === "#right",
  };
  const presence = fakePresence(self, { leases: store.leases, clock, dead: new Set(dead) });
  const service = new WorkflowService({
    store,
    clock,
    presence,
    logger: LOGGER,
    execs: {} as Execs,
    activity,
    agents,
    sandboxes: new WorkflowSandboxes({
      sandboxes,
      tokens,
      parse: parseJob,
      callerOf: () => caller,
      logger: LOGGER,
    }),
    readCron: async (cron, timezone) => readCron(cron, timezone),
    readTask: (json) => parseWorkflow(JSON.parse(json)),
    readTrigger: parseCronTrigger,
    missedAfterMs: async () => 2 * MINUTE,
    flushEvidence: async () => undefined,
  });
  const create = (request: Partial<WorkflowCreateRequest> = {}) =>
    service.create(
      parseJob("WORKFLOW_CREATE", { workflowJson: '{"prompt":"go"}', ...request }) as never,
      caller,
    );
  const cron = (triggerConfig: string, more: object = {}) =>
    create({ triggerType: "cron", triggerConfig, ...more });
  const tick = () => service.tick(new AbortController().signal);
  return { service, store, clock, presence, asked, boxes, removed, caller, create, cron, tick };
}

const never = new AbortController().signal;

describe("workflows", () => {
  test("S2-41 S2-42 S2-77 S2-101 a manual one runs when asked for, with the keys of workflow_json", async () => {
    const { service, create, asked, caller, store } = bed();
    const workflowJson = JSON.stringify({
      sidecar_url: "http://h/sidecar/box-9",
      prompt: "go",
      session_id: "s",
      model: "m",
      context_json: '{"a":1}',
      sidecar_token: "right",
    });
    const { id, nextRunAt } = await create({ name: "n", workflowJson });
    expect(nextRunAt).toBeUndefined();
    expect(await service.trigger(id, caller, never)).toMatchObject({
      workflowId: id,
      name: "n",
      status: "completed",
      executedAt: "2026-01-01T00:00:00.000Z",
      sandboxConfigJson: "",
      task: {
        success: true,
        result: "42",
        error: "",
        traceId: "trace",
        durationMs: 7,
        inputTokens: 3,
        outputTokens: 5,
        sessionId: "session-1",
      },
    });
    const request = {
      message: "go",
      sessionId: "s",
      maxTurns: 4,
      model: "m",
      context: { a: 1 },
      timeoutMs: 60_000,
    };
    expect(asked).toEqual([["box-9", request]]);
    expect(JSON.stringify(await store.workflows.get(id))).not.toContain('"right"');
    expect(await service.runs(id, 9, caller)).toMatchObject([
      { trigger: "manual", state: "done", sandboxId: "box-9", task: { result: "42" } },
    ]);
    expect(await store.counters.read()).toMatchObject({ total_input_tokens: 3, total_output_tokens: 5 });
  });

  test("S2-77 the sandbox's token is checked when the workflow is made, and again when it runs", async () => {
    const { service, create, caller, store } = bed();
    const json = (token: string) =>
      JSON.stringify({ sidecar_url: "box", prompt: "go", sidecar_token: token });
    await expect(create({ workflowJson: json("wrong") })).rejects.toMatchObject({ code: "FORBIDDEN" });
    await expect(create({ workflowJson: json("") })).rejects.toMatchObject({ code: "MISSING_AUTH" });
    const { id, ...rest } = await create({ workflowJson: json("right") });
    await store.workflows.insert({ ...rest, id: 9, tokenHash: "#old" });
    await expect(service.trigger(9, caller, never)).rejects.toMatchObject({ code: "FORBIDDEN" });
    expect(await service.runs(9, 9, caller)).toMatchObject([
      { state: "failed", error: { code: "FORBIDDEN" } },
    ]);
    expect(id).toBe(1);
  });

  test("S2-101 each run has a sandbox of its own from sandbox_config_json, which goes with it, also when it fails", async () => {
    const { service, create, boxes, removed, caller } = bed({
      ask: async (prompt) => {
        if (prompt === "break") throw new AidoError("CONTAINER_LOST", "gone");
        return {};
      },
    });
    const one = await create({ sandboxConfigJson: '{"metadata_json":"{\\"team\\":\\"x\\"}"}' });
    const { runId } = await service.trigger(one.id, caller, never);
    expect([...boxes.values()]).toEqual([{ team: "x", "dev.aido.workflow-run": runId }]);
    const bad = await create({ workflowJson: '{"prompt":"break"}' });
    await expect(service.trigger(bad.id, caller, never)).rejects.toThrow("gone");
    expect(removed).toEqual(["box-1", "box-2"]);
    const secret = create({ sandboxConfigJson: '{"sidecar_token":"t"}' });
    await expect(secret).rejects.toMatchObject({ code: "VALIDATION_ERROR" });
    await expect(create({ sandboxConfigJson: "{" })).rejects.toThrow(/sandbox_config_json is not JSON/);
  });

  test("steps run one after the other in one session until one fails", async () => {
    const { service, create, asked, caller } = bed({
      ask: async (prompt) => (prompt === "b" ? { success: false, error: "no" } : {}),
    });
    const steps = ["a", "b", "c"].map((prompt) => ({ prompt }));
    const { id } = await create({ workflowJson: JSON.stringify({ steps }) });
    const result = await service.trigger(id, caller, never);
    expect(result).toMatchObject({ status: "failed", task: { success: false, error: "no", inputTokens: 6 } });
    expect(result.steps.map(({ name, success }) => [name, success])).toEqual([
      ["step 1", true],
      ["step 2", false],
    ]);
    expect(asked).toMatchObject([
      ["box-1", { sessionId: undefined }],
      ["box-1", { sessionId: "session-1" }],
    ]);
  });

  test.each([
    ["* * * * *", /has 5 fields, not six/],
    ["", /has 0 fields/],
    ["61 * * * * *", /is wrong: .*(61|range)/i],
    ["0 0 0 30 2 *", /never comes/],
    ['{"cron":"0 * * * * *","timezone":"Mars/Base"}', /no time zone "Mars\/Base"/],
    ['{"cron":"0 * * * * *","overlap":"both"}', /overlap/],
    ["{", /is not JSON/],
  ])("S2-101 the schedule %s is refused with what is wrong", async (config, message) => {
    const { cron, store } = bed();
    await expect(cron(config)).rejects.toThrow(message);
    expect(await store.workflows.list({ limit: 9 })).toEqual([]);
  });

  test.each([
    "{}",
    '{"prompt":"a","command":"b"}',
    '{"prompt":"a","steps":[{"command":"b"}]}',
    '{"steps":[{}]}',
    '{"prompt":"a","other":1}',
  ])("S2-77 the workflow %s is refused", async (workflowJson) => {
    await expect(bed().create({ workflowJson })).rejects.toThrow();
  });

  test("S2-9 S2-40 S2-44 a tick runs what is due, once, and plans the next time", async () => {
    const { cron, create, tick, clock, store } = bed();
    const { id, nextRunAt } = await cron(EVERY_MINUTE);
    await create();
    expect(nextRunAt).toEqual(new Date("2026-01-01T00:01:00Z"));
    expect(await tick()).toEqual({ executed: [], count: 0 });
    await clock.advance(MINUTE);
    expect(await tick()).toMatchObject({ count: 1, executed: [{ workflowId: id, status: "completed" }] });
    expect(await tick()).toMatchObject({ count: 0 });
    expect(await store.workflows.get(id)).toMatchObject({ nextRunAt: new Date("2026-01-01T00:02:00Z") });
  });

  test("S2-101 a schedule is in its time zone", async () => {
    const { nextRunAt } = await bed().cron('{"cron":"0 30 3 * * *","timezone":"Europe/Berlin"}');
    expect(nextRunAt).toEqual(new Date("2026-01-01T02:30:00Z"));
  });

  test("S2-40 two servers that tick at once run it once", async () => {
    const store = new MemoryStore();
    const clock = new HandClock();
    const one = bed({ store, clock });
    const two = bed({ store, clock, self: "p2" });
    for (let n = 0; n < 25; n += 1) await one.cron(EVERY_MINUTE);
    await clock.advance(MINUTE);
    const results = await Promise.all([one.tick(), two.tick(), one.tick()]);
    expect(results.reduce((sum, { count }) => sum + count, 0)).toBe(25);
    expect(one.asked.length + two.asked.length).toBe(25);
  });

  test("S2-40 many that are due at once all run, some at a time", async () => {
    let now = 0;
    let most = 0;
    const ask = async (): Promise<Answer> => {
      now += 1;
      most = Math.max(most, now);
      await new Promise((resolve) => setImmediate(resolve));
      now -= 1;
      return {};
    };
    const { cron, tick, clock } = bed({ ask });
    for (let n = 0; n < 200; n += 1) await cron(EVERY_MINUTE);
    await clock.advance(MINUTE);
    expect((await tick()).count).toBe(200);
    expect(most).toBeLessThanOrEqual(10);
    expect(most).toBeGreaterThan(1);
    expect((await tick()).count).toBe(0);
  });

  test("S2-40 one that fails is left alone for longer each time, and its next run always advances", async () => {
    let fails = true;
    const { cron, tick, clock, store } = bed({
      ask: async () => {
        if (fails) throw new AidoError("CONTAINER_LOST", "gone");
        return {};
      },
    });
    const { id } = await cron(EVERY_MINUTE);
    const gaps: number[] = [];
    for (let n = 0; n < 4; n += 1) {
      const { nextRunAt } = (await store.workflows.get(id)) ?? {};
      await clock.advance(Number(nextRunAt) - clock.now().getTime());
      expect(await tick()).toEqual({
        count: 1,
        executed: [{ workflowId: id, status: "error", error: "gone" }],
      });
      const after = await store.workflows.get(id);
      expect(after?.failures).toBe(n + 1);
      gaps.push((Number(after?.nextRunAt) - clock.now().getTime()) / MINUTE);
    }
    expect(gaps).toEqual([2, 3, 5, 9]);
    fails = false;
    await clock.advance(9 * MINUTE);
    expect(await tick()).toMatchObject({ executed: [{ status: "completed" }] });
    expect(await store.workflows.get(id)).toMatchObject({ failures: 0 });
  });

  test("S2-40 times that were missed make one run, or none, as it was asked for", async () => {
    const { cron, tick, clock, service, caller } = bed();
    const run = await cron(EVERY_MINUTE);
    const skip = await cron(`{"cron":"${EVERY_MINUTE}","missed":"skip"}`);
    clock.set(new Date("2026-01-03T12:00:30Z"));
    expect(await tick()).toMatchObject({ count: 1, executed: [{ workflowId: run.id }] });
    expect(await service.runs(skip.id, 9, caller)).toMatchObject([
      { state: "skipped", error: { code: "EXECUTION_TIMEOUT" } },
    ]);
    await clock.advance(MINUTE);
    expect(await tick()).toMatchObject({ count: 2 });
  });

  test("S2-40 a clock that is set back does not stop a schedule, and seconds do not run it twice", async () => {
    const { cron, tick, clock, store } = bed();
    clock.set(new Date("2030-01-01T00:00:00Z"));
    const { id } = await cron(EVERY_MINUTE);
    await clock.advance(MINUTE);
    expect(await tick()).toMatchObject({ count: 1 });
    clock.set(new Date("2030-01-01T00:00:59Z"));
    expect(await tick()).toMatchObject({ count: 0 });
    clock.set(new Date("2030-01-01T00:01:00Z"));
    expect(await tick()).toMatchObject({ count: 0 });
    clock.set(new Date("2026-06-01T00:00:10Z"));
    expect(await tick()).toMatchObject({ count: 0 });
    expect(await store.workflows.get(id)).toMatchObject({ nextRunAt: new Date("2026-06-01T00:01:00Z") });
  });

  test("S2-40 a time that comes while it runs is skipped, or follows afterwards, as it was asked for", async () => {
    const open: (() => void)[] = [];
    const ask = () => new Promise<Answer>((resolve) => open.push(() => resolve({})));
    const { cron, service, clock, caller, tick, store } = bed({ ask });
    const skip = await cron(EVERY_MINUTE);
    const queue = await cron(`{"cron":"${EVERY_MINUTE}","overlap":"queue"}`);
    await clock.advance(MINUTE);
    await service.startDue();
    await expect.poll(() => open.length).toBe(2);
    await clock.advance(MINUTE);
    expect(await tick()).toEqual({ executed: [], count: 0 });
    expect(await service.runs(skip.id, 9, caller)).toMatchObject([
      { state: "skipped" },
      { state: "running" },
    ]);
    expect(await service.runs(queue.id, 9, caller)).toMatchObject([{ state: "running" }]);
    await expect(service.trigger(queue.id, caller, never)).rejects.toMatchObject({
      code: "EXECUTION_CONFLICT",
    });
    for (const go of open) go();
    await expect.poll(async () => (await store.workflows.running()).length).toBe(0);
    await service.startDue();
    await expect.poll(() => open.length).toBe(3);
    open.at(-1)?.();
    await expect
      .poll(async () => (await service.runs(queue.id, 9, caller)).map(({ state }) => state))
      .toEqual(["done", "done"]);
  });

  test("S2-43 S2-102 cancel ends the run that goes on, also one of another server, and there is no other", async () => {
    const store = new MemoryStore();
    const clock = new HandClock();
    const ask = (_: string, signal: AbortSignal) =>
      new Promise<Answer>((_resolve, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }),
      );
    const one = bed({ store, clock, ask });
    const two = bed({ store, clock, self: "p2" });
    for (const other of [one, two]) {
      const { id } = await one.cron(EVERY_MINUTE);
      const running = one.service.trigger(id, one.caller, never);
      const ended = expect(running).rejects.toThrow();
      await expect.poll(() => one.asked.length).toBeGreaterThan(0);
      await other.service.cancel(id, one.caller);
      await clock.advance(2_000);
      await ended;
      expect(await one.service.runs(id, 9, one.caller)).toMatchObject([{ state: "cancelled" }]);
      await expect(one.service.trigger(id, one.caller, never)).rejects.toThrow(/was cancelled/);
      expect(await one.service.get(id, one.caller)).toMatchObject({ active: false, nextRunAt: undefined });
      one.asked.length = 0;
    }
    await clock.advance(MINUTE);
    expect(await one.tick()).toMatchObject({ count: 0 });
  });

  test("S2-39 a run whose server died is told as lost, its sandbox removed, and nothing runs twice", async () => {
    const store = new MemoryStore();
    const clock = new HandClock();
    const first = bed({ store, clock, ask: () => new Promise<Answer>(() => undefined) });
    const { id } = await first.cron(EVERY_MINUTE);
    await clock.advance(MINUTE);
    await first.service.startDue();
    await expect.poll(() => first.asked.length).toBe(1);
    const second = bed({ store, clock, self: "p2", dead: ["p1"] });
    for (const [box, labels] of first.boxes) second.boxes.set(box, labels);
    await second.service.recover();
    expect(second.removed).toEqual(["box-1"]);
    expect(await second.service.runs(id, 9, second.caller)).toMatchObject([
      { state: "lost", sandboxId: "box-1", error: { message: expect.stringContaining("server ended") } },
    ]);
    expect(await second.tick()).toMatchObject({ count: 0 });
    expect(await store.workflows.get(id)).toMatchObject({ failures: 1, runId: undefined });
    await clock.advance(2 * MINUTE);
    expect(await second.tick()).toMatchObject({ count: 1 });
  });

  test("S2-39 a run that a reboot has ended is lost, and its workflow runs again", async () => {
    const store = new MemoryStore();
    const before = bed({ store, self: "boot-before", ask: () => new Promise<Answer>(() => undefined) });
    const { id } = await before.cron(EVERY_MINUTE);
    await before.clock.advance(MINUTE);
    await before.service.startDue();
    await expect.poll(() => before.asked.length).toBe(1);
    const now = bed({ store, self: "this-boot" });
    await now.clock.advance(MINUTE + 10_000);
    await expect(now.service.trigger(id, now.caller, never)).rejects.toMatchObject({
      code: "EXECUTION_CONFLICT",
    });
    await now.clock.advance(MINUTE);
    expect(await now.service.trigger(id, now.caller, never)).toMatchObject({ status: "completed" });
    expect(await now.service.runs(id, 9, now.caller)).toMatchObject([{ state: "done" }, { state: "lost" }]);
  });

  test("S2-39 a lost run whose sandbox cannot be removed yet is settled later, and holds up nothing", async () => {
    const store = new MemoryStore();
    const clock = new HandClock();
    const first = bed({ store, clock, ask: () => new Promise<Answer>(() => undefined) });
    const { id } = await first.create();
    void first.service.trigger(id, first.caller, never).catch(() => undefined);
    await expect.poll(() => first.asked.length).toBe(1);
    let isGone = true;
    const second = bed({ store, clock, self: "p2", dead: ["p1"], isGone: () => isGone });
    await second.service.recover();
    expect(await second.service.runs(id, 9, second.caller)).toMatchObject([{ state: "running" }]);
    isGone = false;
    await second.tick();
    expect(await second.service.runs(id, 9, second.caller)).toMatchObject([{ state: "lost" }]);
  });

  test("S2-40 a store that cannot be written ends the tick; the next one runs what is due, once", async () => {
    const { cron, tick, clock, store, asked } = bed();
    await cron(EVERY_MINUTE);
    await clock.advance(MINUTE);
    const { addRun } = store.workflows;
    store.workflows.addRun = () => Promise.reject(new AidoError("DISK_FULL", "full"));
    expect(await tick()).toEqual({ executed: [], count: 0 });
    store.workflows.addRun = addRun;
    expect(await tick()).toMatchObject({ count: 1 });
    expect(asked).toHaveLength(1);
  });

  test("S2-102 somebody else's workflow is not there; an operator sees all", async () => {
    const { service, create, caller } = bed();
    const { id } = await create();
    const other = { owner: "other", isOperator: false };
    await expect(service.get(id, other)).rejects.toMatchObject({ code: "RESOURCE_NOT_FOUND" });
    await expect(service.trigger(id, other, never)).rejects.toMatchObject({ code: "RESOURCE_NOT_FOUND" });
    await expect(service.cancel(id, other)).rejects.toMatchObject({ code: "RESOURCE_NOT_FOUND" });
    expect(await service.list(other)).toEqual([]);
    expect(await service.list({ ...other, isOperator: true })).toHaveLength(1);
    await expect(
      service.create(parseJob("WORKFLOW_CREATE", { workflowJson: '{"prompt":"x"}' }) as never, caller, id),
    ).rejects.toThrow(/already/);
  });
});
