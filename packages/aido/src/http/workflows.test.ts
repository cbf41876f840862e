import { toWorkflowConfig } from "@aido/sdk/protocol";
import { describe, expect, test } from "vitest";
import { ApiBed, type ApiBedOptions } from "../../test/server/api-bed.ts";
import { FAKE_SHELL } from "../../test/server/fake-shell.ts";

const open = (options: ApiBedOptions = {}) => ApiBed.open({ programs: FAKE_SHELL, ...options });
const json = (value: object) => JSON.stringify(value);

describe("workflows over HTTP", () => {
  test("S2-41 S2-42 S2-43 S2-101 S2-102 made, run in a sandbox of its own, looked at and cancelled by jobs", async () => {
    await using bed = await open();
    const body = {
      name: "n",
      workflow_json: json({
        steps: [{ command: "echo one" }, { name: "last", command: "warn bad; exit 3" }],
      }),
      sandbox_config_json: json({ memory_mb: 64 }),
    };
    const made = await bed.post("/api/jobs/30", body);
    const config = {
      name: "n",
      triggerType: "manual",
      triggerConfig: "",
      sandboxConfigJson: '{"memory_mb":64}',
    };
    expect(made.json).toEqual({
      workflowId: 1,
      status: "active",
      nextRunAt: null,
      config: { ...config, workflowJson: expect.stringContaining("echo one") },
    });
    const ran = await bed.post("/api/jobs/31", { workflow_id: 1 });
    expect(ran.status).toBe(200);
    expect(ran.json).toMatchObject({
      workflowId: 1,
      name: "n",
      status: "failed",
      sandboxConfigJson: body.sandbox_config_json,
      task: { success: false, error: "last ended with exit code 3: bad" },
      steps: [
        { name: "step 1", kind: "command", exitCode: 0, result: "one\n" },
        { name: "last", exitCode: 3, error: "bad\n" },
      ],
    });
    expect(await bed.aido.sandboxes.list()).toEqual([]);
    const { runs } = (await bed.get("/api/workflows/1/runs")).json;
    expect(runs).toMatchObject([
      { state: "failed", trigger: "manual", evidence: { hash: expect.any(String) } },
    ]);
    const [verdict] = await bed.aido.evidence.verify(runs[0].sandboxId);
    expect(verdict).toMatchObject({ ok: true });
    expect((await bed.get("/api/metrics")).json).toMatchObject({ total_jobs: 2, failed_jobs: 1 });
    const client = bed.client();
    expect(await client.workflows.cancel(1)).toEqual({ workflowId: 1, status: "canceled" });
    expect(await client.workflows.get(1)).toMatchObject({ active: false, nextRunAt: undefined });
    expect(await client.workflows.runs(1, { limit: 1 })).toMatchObject([{ startedAt: expect.any(Date) }]);
    expect((await bed.post("/api/jobs/31", { workflow_id: 1 })).status).toBe(409);
    expect((await bed.post("/api/jobs/31", { workflow_id: 7 })).status).toBe(404);
    expect((await bed.get("/api/workflows/x")).status).toBe(400);
  });

  test("S2-75 the ids of all workflows, or of the active ones alone, a page at a time", async () => {
    await using bed = await open();
    const client = bed.client();
    for (let n = 0; n < 5; n += 1) await client.workflows.create({ workflowJson: '{"command":"ls"}' });
    await client.workflows.cancel(2);
    await client.workflows.cancel(4);
    const ids = async (query: string) =>
      (await bed.get(`/api/workflows${query}`)).json.workflows.map(({ id }: { id: number }) => id);
    expect(await ids("")).toEqual([5, 4, 3, 2, 1]);
    expect(await ids("?activeOnly=false")).toEqual([5, 4, 3, 2, 1]);
    expect(await ids("?activeOnly=true")).toEqual([5, 3, 1]);
    expect(await ids("?activeOnly=true&limit=2")).toEqual([5, 3]);
    expect(await ids("?activeOnly=true&limit=2&before=3")).toEqual([1]);
    expect((await bed.get("/api/workflows?activeOnly=yes")).status).toBe(400);
    const listed = await client.workflows.list({ activeOnly: true, limit: 1, before: 5 });
    expect(listed.map(({ id }) => id)).toEqual([3]);
    expect(await client.workflows.list()).toHaveLength(5);
  });

  test("S2-74 S2-76 one that is read by its id can be made again by another server, from that alone", async () => {
    await using first = await open();
    await using second = await open();
    const workflowJson = json({ steps: [{ name: "only", command: "echo $A", env_json: { A: "1" } }] });
    const cron = { triggerType: "cron", triggerConfig: "0 30 3 * * *" } as const;
    const { workflowId } = await first.client().workflows.create({ name: "n", workflowJson, ...cron });
    const read = await first.client().workflows.get(workflowId);
    expect(read).toMatchObject({ id: workflowId, name: "n", active: true, lastRunAt: undefined });
    const copy = await second.client().workflows.create(toWorkflowConfig(read));
    const again = await second.client().workflows.get(copy.workflowId);
    expect(toWorkflowConfig(again)).toEqual(toWorkflowConfig(read));
    expect(again.nextRunAt).toEqual(read.nextRunAt);
    expect(await second.client().workflows.trigger(copy.workflowId)).toMatchObject({
      task: { result: "1\n" },
    });
    expect(await second.client().workflows.get(copy.workflowId)).toMatchObject({
      lastRunAt: expect.any(Date),
    });
    expect((await first.get("/api/workflows/9")).status).toBe(404);
  });

  test("S2-44 a tick is refused from outside, whoever asks", async () => {
    await using bed = await open();
    const { status, json: reply } = await bed.post("/api/jobs/33", {});
    expect(status).toBe(403);
    expect(reply.error).toMatchObject({ code: "FORBIDDEN", hint: expect.stringContaining("TRIGGER") });
  });

  test("S2-101 a bad schedule and a bad workflow say what is wrong with them", async () => {
    await using bed = await open();
    const post = async (body: object) => {
      const { status, json: reply } = await bed.post("/api/jobs/30", {
        workflow_json: '{"command":"ls"}',
        ...body,
      });
      expect(status).toBe(400);
      return reply.error.message as string;
    };
    const cron = { trigger_type: "cron" };
    expect(await post({ ...cron, trigger_config: "* * * * *" })).toContain("has 5 fields, not six");
    expect(await post({ ...cron, trigger_config: "0 99 * * * *" })).toContain("is wrong");
    expect(await post({ ...cron, trigger_config: '{"cron":"0 * * * * *","missed":"x"}' })).toContain(
      "missed",
    );
    expect(await post({ trigger_config: "0 * * * * *" })).toContain("no trigger_config");
    expect(await post({ workflow_json: "{" })).toContain("workflow_json is not JSON");
    expect(await post({ workflow_json: "{}" })).toContain("a prompt, a command, or steps");
    expect(await post({ workflow_json: '{"comand":"ls"}' })).toContain("comand");
  });

  test("S2-77 in a sandbox that is there, as long as its token is the same; others do not see it", async () => {
    await using bed = await open({ guarded: true });
    const one = await bed.key("one");
    const two = await bed.key("two");
    const { sandboxId, sidecarUrl, token } = (await bed.post("/api/jobs/0", {}, { key: one })).json;
    const task = { sidecar_url: sidecarUrl, sidecar_token: token, command: "echo here" };
    const made = await bed.post("/api/jobs/30", { workflow_json: json(task) }, { key: one });
    expect(made.json).toMatchObject({ workflowId: 1 });
    const ask = { workflow_id: 1 };
    const ran = await bed.post("/api/jobs/31", ask, { key: one });
    expect(ran.json).toMatchObject({ status: "completed", sandboxId, task: { result: "here\n" } });
    expect((await bed.post("/api/jobs/31", ask, { key: two })).status).toBe(404);
    expect((await bed.get("/api/workflows", { key: two })).json).toEqual({ workflows: [] });
    const stolen = await bed.post("/api/jobs/30", { workflow_json: json(task) }, { key: two });
    expect(stolen.status).toBe(404);
    await bed.aido.sandboxes.issueToken(sandboxId);
    expect((await bed.post("/api/jobs/31", ask, { key: one })).status).toBe(403);
    expect(await bed.aido.sandboxes.get(sandboxId)).toMatchObject({ state: "running" });
    expect(JSON.stringify(bed.logged)).not.toContain(token);
  });
});
