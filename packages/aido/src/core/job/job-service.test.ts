import { readdirSync } from "node:fs";
import type { Execs } from "@aido/sdk";
import { AidoError, JOB_NAMES } from "@aido/sdk/protocol";
import { parseJob } from "@aido/sdk/schemas";
import { describe, expect, test } from "vitest";
import { HandClock } from "../../../test/exec/hand-clock.ts";
import { fakePresence } from "../../../test/processes/fake-presence.ts";
import { MemoryStore } from "../../stores/memory/memory-store.ts";
import { Activity } from "../activity/activity.ts";
import { BatchService } from "../batch/batch-service.ts";
import type { JobCaller } from "./job-caller.ts";
import type { HandlerDeps } from "./job-handler.ts";
import { jobHandlers } from "./job-handlers.ts";
import { JobService } from "./job-service.ts";

const TOKEN = "right";
const LOGGER = { debug() {}, info() {}, warn() {}, error() {}, child: () => LOGGER };

/** Jobs on services that say what they were asked. */
function bed(changes: Partial<HandlerDeps> = {}, store = new MemoryStore(), self = "p1") {
  const clock = new HandClock();
  const asked: unknown[] = [];
  const presence = fakePresence(self, { leases: store.leases, clock });
  const activity = new Activity({ sandboxes: store.sandboxes, clock, logger: LOGGER });
  const caller: JobCaller = {
    owner: "me",
    isOperator: false,
    isInternal: false,
    find: async (id) => {
      if (!id.startsWith("box")) throw new AidoError("CONTAINER_NOT_FOUND", "none");
      return { id };
    },
    create: async (request) => {
      asked.push(["create", request]);
      return {
        id: "box-new",
        sidecarUrl: "http://h/sidecar/box-new",
        token: request.token ?? TOKEN,
      } as never;
    },
  };
  const handlers = jobHandlers({
    sandboxes: {
      start: () => Promise.reject(new Error("unused")),
      stop: () => Promise.reject(new Error("unused")),
      destroy: async (id) => void asked.push(["destroy", id]),
    },
    execs: {} as Execs,
    tokens: { verify: async (_, token) => token === TOKEN },
    activity,
    batches: new BatchService({ store, clock, presence, logger: LOGGER, ttlMs: 1000 }),
    ...changes,
  });
  const parse = parseJob;
  const jobs = new JobService({
    handlers,
    parse,
    describe: () => [],
    local: caller,
    store,
    clock,
    presence,
  });
  return { jobs, store, clock, asked, caller, activity };
}

const answer = (changes: object = {}) => ({
  success: true,
  response: "42",
  error: undefined,
  errorCode: undefined,
  traceId: "trace-1",
  durationMs: 7,
  usage: { inputTokens: 3, outputTokens: 5 },
  sessionId: "session-1",
  ...changes,
});

describe("the agent's jobs", () => {
  test("S2-25 S2-29 S2-95 a prompt asks once, and the answer has the seed's fields", async () => {
    const runs: unknown[] = [];
    const run = async (...args: unknown[]) => {
      runs.push(args.slice(0, 2));
      return answer();
    };
    const { jobs, store } = bed({ agents: { run } });
    const result = await jobs.run(11, {
      sidecarUrl: "http://h/sidecar/box",
      message: "what?",
      sessionId: "session-1",
      model: "m",
      contextJson: '{"a":1}',
      timeoutMs: 1000,
      sidecarToken: TOKEN,
    });
    expect(result).toEqual({
      success: true,
      response: "42",
      error: "",
      traceId: "trace-1",
      durationMs: 7,
      inputTokens: 3,
      outputTokens: 5,
    });
    const request = {
      message: "what?",
      sessionId: "session-1",
      model: "m",
      context: { a: 1 },
      timeoutMs: 1000,
    };
    expect(runs).toEqual([["box", request]]);
    const counted = { total_jobs: 1, failed_jobs: 0, total_input_tokens: 3, total_output_tokens: 5 };
    expect(await store.counters.read()).toMatchObject(counted);
  });

  test("S2-26 S2-30 S2-96 a task has several turns and names its session; what is empty or 0 is left to the agent", async () => {
    const runs: unknown[] = [];
    const run = async (_: string, request: object) => {
      runs.push(request);
      return answer({ success: false, error: "no", sessionId: "" });
    };
    const { jobs, store } = bed({ agents: { run } });
    const request = { sidecarUrl: "box", prompt: "do", sidecarToken: TOKEN };
    expect(await jobs.run("TASK", { ...request, maxTurns: 4, sessionId: "s" })).toEqual({
      success: false,
      result: "42",
      error: "no",
      traceId: "trace-1",
      durationMs: 7,
      inputTokens: 3,
      outputTokens: 5,
      sessionId: "s",
    });
    await jobs.run("TASK", { ...request, maxTurns: 0, model: "" });
    expect(runs).toEqual([
      { message: "do", maxTurns: 4, sessionId: "s", context: {} },
      { message: "do", context: {} },
    ]);
    expect(await store.counters.read()).toMatchObject({ total_jobs: 2, failed_jobs: 2 });
  });

  test("S2-27 S2-80 a sandbox is in use while its agent works, however that ends", async () => {
    let end = (_?: Error): void => {};
    const run = () =>
      new Promise<ReturnType<typeof answer>>((resolve, reject) => {
        end = (error) => (error === undefined ? resolve(answer()) : reject(error));
      });
    const { jobs, activity } = bed({ agents: { run } });
    for (const how of [undefined, new Error("broken")]) {
      const running = jobs.run("TASK", { sidecarUrl: "box", prompt: "do", sidecarToken: TOKEN });
      await expect.poll(() => activity.count("session")).toBe(1);
      expect(activity.isBusy("box")).toBe(true);
      end(how);
      await running.catch(() => undefined);
      expect(activity.count("session")).toBe(0);
    }
  });

  test("S2-35 S2-98 a task over many is aggregated, and what each agent used is counted", async () => {
    const run = async (sandbox: string) => answer({ response: sandbox === "box-2" ? "41" : "42" });
    const { jobs, store } = bed({ agents: { run } });
    const request = {
      sidecarUrls: ["box-1", "box-2", "box-3"],
      sidecarTokens: [TOKEN, TOKEN, TOKEN],
      prompt: "think",
      parallel: true,
      aggregation: "majority",
    } as const;
    const { batchId, taskResults, aggregate } = await jobs.run(21, request);
    expect(taskResults.map((item) => "result" in item && item.result)).toEqual(["42", "41", "42"]);
    expect(taskResults[1]).toMatchObject({ sidecarUrl: "box-2", sessionId: "session-1" });
    expect(aggregate).toEqual({ aggregation: "majority", success: true, result: "42", from: [0, 2] });
    expect(await store.counters.read()).toMatchObject({
      total_jobs: 1,
      total_input_tokens: 9,
      total_output_tokens: 15,
    });
    expect(await jobs.run("BATCH_COLLECT", { batchId })).toMatchObject({
      kind: "task",
      aggregate: { result: "42" },
    });
  });

  test("S2-98 the first answer that succeeds ends the others", async () => {
    const run = (sandbox: string, _: object, { signal }: { signal?: AbortSignal | undefined }) =>
      sandbox === "box-2"
        ? Promise.resolve(answer())
        : new Promise<never>((__, reject) =>
            signal?.addEventListener("abort", () => reject(signal.reason as Error)),
          );
    const { jobs } = bed({ agents: { run } });
    const tokens = [TOKEN, TOKEN];
    const request = { sidecarUrls: ["box-1", "box-2"], sidecarTokens: tokens, prompt: "x", parallel: true };
    const { taskResults, aggregate } = await jobs.run("BATCH_TASK", { ...request, aggregation: "first" });
    expect(taskResults[0]).toMatchObject({ error: { code: "CANCELLED" } });
    expect(aggregate).toMatchObject({ result: "42", from: [1] });
    const bad = jobs.run("BATCH_TASK", { ...request, aggregation: "best" as never });
    await expect(bad).rejects.toThrow(/aggregation/);
  });

  test.each(["PROMPT", "TASK", "BATCH_TASK", "SANDBOX_SNAPSHOT"] as const)(
    "S2-7 %s says that it is not supported where there is nothing to do it",
    async (job) => {
      const { jobs, store } = bed();
      await expect(jobs.run(job, {} as never)).rejects.toMatchObject({ code: "UNSUPPORTED" });
      expect(await store.counters.read()).toMatchObject({ total_jobs: 0 });
    },
  );
});

describe("the snapshot's job", () => {
  const taken = { url: "s3://b/k", sha256: "ab", bytes: 9, createdAt: new Date("2026-01-01T00:00:00Z") };

  test("S2-23 S2-93 says where the files went; an empty destination is the operator's", async () => {
    const takes: unknown[] = [];
    const take = async (
      id: string,
      { signal: _, ...options }: object & { signal?: AbortSignal | undefined },
    ) => {
      takes.push([id, options]);
      return taken;
    };
    const { jobs } = bed({ snapshots: { take } });
    const request = { sidecarUrl: "box", sidecarToken: TOKEN, includeWorkspace: true };
    expect(await jobs.run(4, { ...request, destination: "s3://b/k" })).toEqual({
      sandboxId: "box",
      url: "s3://b/k",
      sha256: "ab",
      bytes: 9,
      createdAt: "2026-01-01T00:00:00.000Z",
    });
    await jobs.run(4, { ...request, destination: " " });
    expect(takes).toEqual([
      ["box", { destination: "s3://b/k", includeWorkspace: true, includeState: false }],
      ["box", { includeWorkspace: true, includeState: false }],
    ]);
    const neither = jobs.run(4, { sidecarUrl: "box", sidecarToken: TOKEN });
    await expect(neither).rejects.toMatchObject({ code: "VALIDATION_ERROR" });
    const stranger = jobs.run(4, { ...request, sidecarToken: "wrong" });
    await expect(stranger).rejects.toMatchObject({ code: "FORBIDDEN" });
    expect(takes).toHaveLength(2);
  });
});

describe("making a sandbox with SSH", () => {
  test("S2-90 the key is provisioned for the sandbox's own user, and the port is answered", async () => {
    const { jobs, keys } = sshJobs();
    const result = await jobs.run(0, { sshEnabled: true, sshPublicKey: " ssh-ed25519 AAAA \n" });
    expect(result).toEqual({
      sandboxId: "box-new",
      sidecarUrl: "http://h/sidecar/box-new",
      token: TOKEN,
      sshPort: 2222,
    });
    expect(keys).toEqual([["box-new", { publicKey: " ssh-ed25519 AAAA \n" }]]);
    expect(await jobs.run(0, { sshEnabled: true })).toMatchObject({ sshPort: 2222 });
    expect(await jobs.run(0, { sshPublicKey: "ssh-ed25519 AAAA" })).toMatchObject({ sshPort: null });
    expect(keys).toHaveLength(1);
  });

  test("S2-90 a sandbox whose key is refused is not left behind, and without an SSH server none is made", async () => {
    const addKey = () => Promise.reject(new AidoError("VALIDATION_ERROR", "bad key"));
    const { jobs, asked } = bed({ ssh: { port: async () => 2222, addKey, removeKey: async () => false } });
    await expect(jobs.run(0, { sshEnabled: true, sshPublicKey: "x" })).rejects.toThrow("bad key");
    expect(asked.at(-1)).toEqual(["destroy", "box-new"]);
    const without = bed();
    await expect(without.jobs.run(0, { sshEnabled: true })).rejects.toMatchObject({ code: "UNSUPPORTED" });
    expect(without.asked).toEqual([]);
  });

  test("S2-103 S2-104 keys are provisioned and revoked by whoever has the sandbox's token", async () => {
    const { jobs, keys } = sshJobs();
    const request = { sidecar_url: "http://h/sidecar/box", username: "", public_key: "ssh-ed25519 AAAA" };
    const named = { ...request, sidecar_token: TOKEN };
    expect(await jobs.runAny(40, named)).toEqual({
      sandboxId: "box",
      username: "",
      provisioned: true,
      sshPort: 2222,
    });
    expect(await jobs.runAny("SSH_REVOKE", named)).toEqual({ sandboxId: "box", username: "", revoked: true });
    expect(keys).toEqual([
      ["box", { username: "", publicKey: "ssh-ed25519 AAAA" }],
      ["box", { username: "", key: "ssh-ed25519 AAAA" }],
    ]);
    const wrong = jobs.runAny(41, { ...request, sidecar_token: "wrong" });
    await expect(wrong).rejects.toMatchObject({ code: "FORBIDDEN" });
    expect(keys).toHaveLength(2);
  });

  function sshJobs() {
    const keys: unknown[] = [];
    const keep = async (...args: unknown[]) => keys.push(args) > 0;
    return { ...bed({ ssh: { port: async () => 2222, addKey: keep, removeKey: keep } }), keys };
  }

  test("S2-66 S2-90 a destination for snapshots in the metadata becomes the sandbox's own", async () => {
    const { jobs, asked } = bed();
    await jobs.run(0, { metadataJson: '{"snapshot_destination":" s3://mine/box ","team":"x"}' });
    expect(asked).toMatchObject([
      ["create", { snapshotDestination: "s3://mine/box", labels: { team: "x" } }],
    ]);
    expect(asked[0]).not.toMatchObject([
      expect.anything(),
      { labels: { snapshot_destination: expect.anything() } },
    ]);
  });
});

describe("the service of jobs", () => {
  test("S2-11 has one handler file for each of the 18 jobs", () => {
    const files = readdirSync(new URL("handlers", import.meta.url)).map((name) => name.replace(/\.ts$/, ""));
    const deps = { agents: {}, snapshots: {}, ssh: {}, workflows: {} } as unknown as HandlerDeps;
    expect(Object.keys(jobHandlers(deps)).toSorted()).toEqual(JOB_NAMES.toSorted());
    const wanted = JOB_NAMES.map((name) => name.toLowerCase().replaceAll("_", "-"));
    expect(files.toSorted()).toEqual(wanted.toSorted());
  });

  test("S2-78 a job that was at work before a reboot is counted as failed", async () => {
    const never = { snapshots: { take: () => new Promise<never>(() => undefined) } };
    const before = bed(never, new MemoryStore(), "boot-before");
    void before.jobs.run(4, { sidecarUrl: "box", sidecarToken: TOKEN, includeState: true });
    await expect.poll(() => before.store.jobs.list()).toHaveLength(1);
    const now = bed({}, before.store, "this-boot");
    await now.jobs.recover();
    expect(await now.store.counters.read()).toMatchObject({ failed_jobs: 0 });
    await now.clock.advance(61_000);
    await now.jobs.recover();
    await now.jobs.recover();
    expect(await now.store.counters.read()).toMatchObject({ failed_jobs: 1, total_jobs: 1 });
    expect(await now.store.jobs.list()).toEqual([]);
  });

  test("S2-44 the scheduler itself may tick", async () => {
    const { jobs, caller } = bed();
    await expect(jobs.run(33, {})).rejects.toMatchObject({ code: "FORBIDDEN" });
    const own = jobs.run(33, {}, { caller: { ...caller, isInternal: true } });
    await expect(own).rejects.not.toMatchObject({ code: "FORBIDDEN" });
  });

  test("S2-78 how long jobs took is counted, also of those that fail", async () => {
    const context: { clock?: HandClock } = {};
    const take = async () => {
      await context.clock?.advance(250);
      throw new Error("broken");
    };
    const made = bed({ snapshots: { take } });
    context.clock = made.clock;
    const request = { sidecarUrl: "box", sidecarToken: TOKEN, includeState: true };
    await expect(made.jobs.run(4, request)).rejects.toThrow("broken");
    expect(await made.store.counters.read()).toMatchObject({
      total_duration_ms: 250,
      failed_jobs: 1,
      total_jobs: 1,
    });
    expect(await made.store.jobs.list()).toEqual([]);
  });
});
