import { toAidoError, type WorkflowCreated } from "@aido/sdk/protocol";
import { describe, expect, test } from "vitest";
import { ApiBed, type ApiBedOptions } from "../../../test/server/api-bed.ts";
import { FAKE_SHELL } from "../../../test/server/fake-shell.ts";
import { runJob } from "../../cli/commands/job.ts";
import { fakeContext } from "../../cli/testing/fake-context.ts";
import type { JobDispatcher } from "./job-dispatcher.ts";

const open = (options: ApiBedOptions = {}) => ApiBed.open({ programs: FAKE_SHELL, ...options });

interface JobSubmitted {
  callId: number;
  job: number;
  inputs: object;
}
type JobAnswer = { callId: number; result: object } | { callId: number; error: { code: string } };

/** What a runner that follows a chain does with aido: an event comes in, one answer goes out. Knows the dispatcher alone. */
class Runner {
  readonly answers: JobAnswer[] = [];
  readonly #jobs: JobDispatcher;

  constructor(jobs: JobDispatcher) {
    this.#jobs = jobs;
  }

  // biome-ignore lint/suspicious/noExplicitAny: a result is whatever the test expects it to be
  async submitted({ callId, job, inputs }: JobSubmitted): Promise<any> {
    const answer = await this.#jobs.runAny(job, inputs, { workflowId: callId }).then(
      (result) => ({ callId, result }),
      (thrown: unknown) => ({ callId, error: { code: toAidoError(thrown).code } }),
    );
    this.answers.push(answer);
    return "result" in answer ? answer.result : answer.error;
  }
}

describe("the dispatcher of jobs", () => {
  test("S2-6 a submitted job has one result, the same for a runner, HTTP and the command line", async () => {
    await using bed = await open();
    const runner = new Runner(bed.aido.jobs);
    const made = await runner.submitted({ callId: 1, job: 0, inputs: { name: "box" } });
    expect(made).toEqual({
      sandboxId: expect.stringMatching(/^sandbox-/),
      sidecarUrl: expect.stringContaining(made.sandboxId),
      token: expect.stringMatching(/^[0-9a-f]{64}$/),
      sshPort: null,
    });
    const command = "echo out; warn err; exit 3";
    const inputs = { sidecar_url: made.sidecarUrl, command, sidecar_token: made.token };
    const result = { exitCode: 3, stdout: "out\n", stderr: "err\n" };
    expect(await runner.submitted({ callId: 2, job: 10, inputs })).toEqual(result);
    expect((await bed.post("/api/jobs/10", inputs)).json).toEqual(result);
    const context = fakeContext({ backend: bed.aido });
    expect(await runJob(context, "10", [], { jsonArgs: JSON.stringify(inputs) })).toBe(0);
    expect(JSON.parse(context.stdout.text)).toEqual(result);
    expect(await bed.store.counters.read()).toMatchObject({ total_jobs: 4, failed_jobs: 0 });
  });

  test("S2-6 a job that fails answers with a code, and each of many at once with its own result", async () => {
    await using bed = await open();
    const runner = new Runner(bed.aido.jobs);
    const { sandboxId, token } = await runner.submitted({ callId: 1, job: 0, inputs: {} });
    const bad = [
      { job: 10, inputs: { sidecar_url: "sandbox-none", command: "x", sidecar_token: token } },
      { job: 10, inputs: { sidecar_url: sandboxId, command: "x", sidecar_token: "wrong" } },
      { job: 10, inputs: { sidecar_url: sandboxId, comand: "x" } },
      { job: 33, inputs: {} },
      { job: 99, inputs: {} },
    ];
    const codes: string[] = [];
    for (const [at, one] of bad.entries()) {
      codes.push((await runner.submitted({ callId: 10 + at, ...one })).code);
    }
    expect(codes).toEqual([
      "CONTAINER_NOT_FOUND",
      "FORBIDDEN",
      "VALIDATION_ERROR",
      "FORBIDDEN",
      "RESOURCE_NOT_FOUND",
    ]);
    const many = Array.from({ length: 20 }, (_, at) => ({
      callId: 100 + at,
      job: 10,
      inputs: { sidecar_url: sandboxId, command: `echo ${at}`, sidecar_token: token },
    }));
    const results = await Promise.all(many.map((event) => runner.submitted(event)));
    expect(results.map(({ stdout }) => stdout)).toEqual(many.map((_, at) => `${at}\n`));
    const answered = runner.answers.map(({ callId }) => callId).sort((a, b) => a - b);
    expect(answered).toEqual([1, 10, 11, 12, 13, 14, ...many.map(({ callId }) => callId)]);
  });

  test("S2-6 a submission that comes again makes no second batch and no second workflow", async () => {
    await using bed = await open();
    const runner = new Runner(bed.aido.jobs);
    const batch = {
      callId: 5,
      job: 20,
      inputs: { count: 2, template_request: {}, batch_id: "batch-call-5" },
    };
    expect((await runner.submitted(batch)).sandboxes).toHaveLength(2);
    await runner.submitted(batch);
    expect(await bed.aido.sandboxes.list()).toHaveLength(2);
    const workflow = { callId: 0, job: 30, inputs: { workflow_json: '{"command":"echo once"}' } };
    expect(await runner.submitted(workflow)).toMatchObject({ workflowId: 0, status: "active" });
    expect(await runner.submitted(workflow)).toEqual({ code: "EXECUTION_CONFLICT" });
    expect((await bed.aido.workflows.list()).map(({ id }) => id)).toEqual([0]);
  });

  test("S2-38 S2-74 what WORKFLOW_CREATE answers is enough to make the workflow at another operator, and it runs", async () => {
    await using first = await open();
    const inputs = {
      name: "nightly",
      workflow_json: JSON.stringify({
        steps: [
          { command: "echo $WHO", env_json: '{"WHO":"you"}' },
          { name: "two", command: "pwd" },
        ],
      }),
      trigger_type: "cron",
      trigger_config: '{"cron":"0 30 3 * * *","timezone":"Europe/Berlin","missed":"skip"}',
      sandbox_config_json: '{"memory_mb":64}',
    };
    const callId = 7 * 2 ** 32 + 3;
    const made: WorkflowCreated = await new Runner(first.aido.jobs).submitted({ callId, job: 30, inputs });
    expect(made).toMatchObject({ workflowId: callId, config: { name: "nightly", triggerType: "cron" } });
    // A registry keeps text: nothing but what survives that may count.
    const entry = JSON.parse(JSON.stringify(made)) as WorkflowCreated;
    await using second = await open();
    const rebuilt = { callId: entry.workflowId, job: 30, inputs: entry.config };
    expect(await new Runner(second.aido.jobs).submitted(rebuilt)).toEqual(made);
    const before = await first.aido.workflows.get(callId);
    const after = await second.aido.workflows.get(callId);
    const times = { createdAt: expect.any(Date), updatedAt: expect.any(Date) };
    expect(after).toEqual({ ...before, ...times });
    const run = await second.aido.workflows.trigger(callId);
    expect(run).toMatchObject({ status: "completed", name: "nightly", task: { success: true } });
    expect(run.steps.map(({ name, result }) => [name, result])).toEqual([
      ["step 1", "you\n"],
      ["two", "/home/agent\n"],
    ]);
  });

  test("S2-131 results carry what others must share and no secret: a sandbox's token is in its create's alone", async () => {
    await using bed = await open();
    const runner = new Runner(bed.aido.jobs);
    const made = await runner.submitted({ callId: 1, job: 0, inputs: {} });
    const { sandboxId, sidecarUrl, token } = made;
    const place = { sidecar_url: sidecarUrl, sidecar_token: token };
    const task = { ...place, command: "echo hi" };
    const jobs: [number, object][] = [
      [10, { ...place, command: "echo hi" }],
      [22, { sidecar_urls: [sidecarUrl], sidecar_tokens: [token], command: "echo hi", batch_id: "batch-b" }],
      [23, { batch_id: "batch-b" }],
      [30, { workflow_json: JSON.stringify(task) }],
      [31, { workflow_id: 5 }],
      [32, { workflow_id: 5 }],
      [1, { sandbox_id: sandboxId }],
      [2, { sandbox_id: sandboxId }],
      [3, { sandbox_id: sandboxId }],
    ];
    const record = await bed.store.sandboxes.get(sandboxId);
    for (const [at, [job, inputs]] of jobs.entries()) {
      await runner.submitted({ callId: at + 2, job, inputs });
    }
    const results = runner.answers.map((answer) => ("result" in answer ? answer.result : answer));
    expect(results.filter((result) => "error" in result)).toEqual([]);
    // The mapping of sandboxes and the registry of workflows can be kept from results alone.
    expect(results.at(0)).toMatchObject({ sandboxId });
    expect(results.at(-1)).toEqual({ sandboxId, deleted: true });
    expect(results[4]).toMatchObject({
      workflowId: 5,
      config: { workflowJson: expect.stringContaining(sandboxId) },
    });
    const published = JSON.stringify([{ ...made, token: "" }, ...results.slice(1)]);
    for (const secret of [token, record?.tokenHash, record?.supervisorToken, bed.root]) {
      expect(secret).toMatch(/./);
      expect(published).not.toContain(secret);
    }
    expect(published).not.toMatch(/token_?hash|owner|holder/i);
  });
});
