import { describe, expect, test } from "vitest";
import {
  KEPT_RUNS,
  type NewWorkflow,
  type WorkflowRunEnd,
  type WorkflowRunRecord,
} from "../../src/core/workflow/workflow-store.ts";
import { START, type StoreUnderTest } from "./records.ts";

const at = (ms: number) => new Date(START + ms);

/** The part of the stores' contract about workflows. */
export function storeWorkflowContract(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`${name} workflows`, () => {
    test("S2-13 S2-101 a workflow comes back as it was written; an id that is taken is never written over", async () => {
      await using opened = await open();
      const { workflows } = opened.store;
      const id = await workflows.insert(workflow());
      expect(id).toBe(1);
      expect(await workflows.get(1)).toEqual({ ...workflow(), id: 1 });
      expect(await workflows.get(2)).toBeUndefined();
      const chosen = 7 * 2 ** 32 + 3;
      expect(await workflows.insert(workflow({ id: chosen, owner: "two" }))).toBe(chosen);
      expect(await workflows.insert(workflow({ id: chosen, name: "other" }))).toBeUndefined();
      expect(await workflows.get(chosen)).toMatchObject({ name: "nightly" });
      expect((await workflows.list({ limit: 9 })).map(({ id: one }) => one)).toEqual([chosen, 1]);
      expect((await workflows.list({ owner: "one", limit: 9 })).map(({ id: one }) => one)).toEqual([1]);
      expect(await workflows.countActive()).toBe(2);
    });

    test("S2-75 those that are active are listed alone, and a list goes on where the page before ended", async () => {
      await using opened = await open();
      const { workflows } = opened.store;
      for (const owner of ["one", "two", "one", "one"]) await workflows.insert(workflow({ owner }));
      await workflows.cancel(3, at(1));
      const ids = async (query: object) => (await workflows.list({ limit: 9, ...query })).map(({ id }) => id);
      expect(await ids({ activeOnly: false })).toEqual([4, 3, 2, 1]);
      expect(await ids({ activeOnly: true })).toEqual([4, 2, 1]);
      expect(await ids({ activeOnly: true, owner: "one" })).toEqual([4, 1]);
      expect(await ids({ before: 4, limit: 2 })).toEqual([3, 2]);
      expect(await ids({ activeOnly: true, owner: "one", before: 4 })).toEqual([1]);
      expect(await ids({ before: 0 })).toEqual([]);
    });

    test("S2-40 what is due is found, longest due first; what queues behind its own run is not", async () => {
      await using opened = await open();
      const { workflows } = opened.store;
      await workflows.insert(workflow({ nextRunAt: at(200) }));
      await workflows.insert(workflow({ nextRunAt: at(100) }));
      await workflows.insert(workflow({ nextRunAt: at(300) }));
      await workflows.insert(workflow({ nextRunAt: undefined, trigger: { type: "manual" } }));
      const due = async (ms: number, plannedAfter = at(1000)) =>
        (await workflows.due({ now: at(ms), plannedAfter, limit: 9 })).map(({ id }) => id);
      expect(await due(99)).toEqual([]);
      expect(await due(200)).toEqual([2, 1]);
      expect(await due(0, at(-1))).toEqual([2, 1, 3]);
      const queue = { type: "cron", cron: "x", timezone: "UTC", missed: "run", overlap: "queue" } as const;
      await workflows.insert(workflow({ nextRunAt: at(50), trigger: queue }));
      expect(await workflows.addRun(run("r1", 5), undefined)).toBe(true);
      expect(await workflows.addRun(run("r2", 2), undefined)).toBe(true);
      expect(await due(200)).toEqual([2, 1]);
      await workflows.cancel(2, at(5));
      expect(await due(200)).toEqual([1]);
    });

    test("S2-42 one run at a time; the next is planned in the same step, and only by who knows the plan", async () => {
      await using opened = await open();
      const { workflows, counters } = opened.store;
      await workflows.insert(workflow({ nextRunAt: at(100) }));
      const plan = { from: at(100), nextRunAt: at(200), plannedAt: at(101) };
      expect(await workflows.addRun(run("r0"), { ...plan, from: at(99) })).toBe(false);
      expect(await workflows.addRun(run("r1"), plan)).toBe(true);
      expect(await workflows.addRun(run("r2"), { ...plan, from: at(200) })).toBe(false);
      expect(await workflows.addRun(run("r2"), undefined)).toBe(false);
      const begun = { runId: "r1", nextRunAt: at(200), plannedAt: at(101), lastRunAt: at(10) };
      expect(await workflows.get(1)).toMatchObject(begun);
      const skipped = run("r3", 1, { state: "skipped", endedAt: at(200) });
      const later = { from: at(200), nextRunAt: at(300), plannedAt: at(201) };
      expect(await workflows.addRun(skipped, later)).toBe(true);
      await workflows.setRunSandbox("r1", "box");
      expect((await workflows.running()).map(({ id }) => id)).toEqual(["r1"]);
      expect(await workflows.endRun("r1", end({ failures: 3, notBefore: at(900) }))).toBe(true);
      expect(await workflows.endRun("r1", end())).toBe(false);
      expect(await counters.read()).toMatchObject({ total_input_tokens: 5 });
      expect(await workflows.get(1)).toMatchObject({ runId: undefined, failures: 3, nextRunAt: at(900) });
      const { counts: _, failures: __, notBefore: ___, ...outcome } = end();
      expect(await workflows.runs(1, 9)).toEqual([skipped, { ...run("r1"), sandboxId: "box", ...outcome }]);
      expect(await workflows.plan(1, { from: at(300), nextRunAt: at(1), plannedAt: at(1) })).toBe(false);
      expect(await workflows.plan(1, { from: at(900), nextRunAt: at(950), plannedAt: at(1) })).toBe(true);
    });

    test("S2-43 a cancelled workflow has no next run and begins none; the run that goes on ends as ever", async () => {
      await using opened = await open();
      const { workflows } = opened.store;
      await workflows.insert(workflow({ nextRunAt: at(100) }));
      await workflows.addRun(run("r1"), undefined);
      expect(await workflows.cancel(1, at(7))).toBe(true);
      expect(await workflows.cancel(1, at(8))).toBe(false);
      expect(await workflows.get(1)).toMatchObject({
        active: false,
        nextRunAt: undefined,
        updatedAt: at(7),
        runId: "r1",
      });
      expect(await workflows.endRun("r1", end({ notBefore: at(900) }))).toBe(true);
      expect(await workflows.get(1)).toMatchObject({ nextRunAt: undefined, runId: undefined });
      expect(await workflows.addRun(run("r2"), undefined)).toBe(false);
      expect(await workflows.countActive()).toBe(0);
    });

    test("the last runs of each workflow are kept", async () => {
      await using opened = await open();
      const { workflows } = opened.store;
      await workflows.insert(workflow());
      await workflows.insert(workflow());
      await workflows.addRun(run("other", 2, { state: "skipped" }), undefined);
      await workflows.addRun(run("going"), undefined);
      for (let n = 0; n < KEPT_RUNS + 5; n += 1)
        await workflows.addRun(run(`s${n}`, 1, { state: "skipped" }), undefined);
      const kept = (await workflows.runs(1, 1000)).map(({ id }) => id);
      expect(kept.at(0)).toBe(`s${KEPT_RUNS + 4}`);
      expect(kept).toHaveLength(KEPT_RUNS + 1);
      expect(kept.at(-1)).toBe("going");
      expect(await workflows.runs(2, 9)).toHaveLength(1);
    });
  });
}

function workflow(changes: Partial<NewWorkflow> = {}): NewWorkflow {
  return {
    name: "nightly",
    owner: "one",
    isOperator: false,
    trigger: { type: "cron", cron: "0 * * * * *", timezone: "UTC", missed: "run", overlap: "skip" },
    steps: [{ kind: "command", name: "step 1", command: "ü", cwd: "", envJson: { A: "1" }, timeoutMs: 1 }],
    sandboxId: undefined,
    sandboxConfigJson: "{}",
    tokenHash: undefined,
    active: true,
    runId: undefined,
    failures: 0,
    createdAt: at(0),
    updatedAt: at(0),
    lastRunAt: undefined,
    nextRunAt: at(60_000),
    plannedAt: at(0),
    ...changes,
  };
}

function run(id: string, workflowId = 1, changes: Partial<WorkflowRunRecord> = {}): WorkflowRunRecord {
  return {
    id,
    workflowId,
    trigger: "cron",
    state: "running",
    holder: "p1",
    scheduledFor: at(9),
    startedAt: at(10),
    endedAt: undefined,
    sandboxId: undefined,
    steps: [],
    task: undefined,
    error: undefined,
    evidence: undefined,
    ...changes,
  };
}

function end(changes: Partial<WorkflowRunEnd> = {}): WorkflowRunEnd {
  return {
    state: "failed",
    endedAt: at(20),
    steps: [],
    task: undefined,
    error: { code: "X", message: "y" },
    evidence: { entries: 3, hash: "h" },
    failures: undefined,
    notBefore: undefined,
    counts: { total_input_tokens: 5 },
    ...changes,
  };
}
