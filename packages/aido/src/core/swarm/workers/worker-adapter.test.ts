import { AidoError } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { execRecord, sandboxRecord } from "../../../../test/contract/records.ts";
import { HandClock } from "../../../../test/exec/hand-clock.ts";
import { MemoryStore } from "../../../stores/memory/memory-store.ts";
import type { WorkerDeps } from "./sandbox-workers.ts";
import { WorkerAdapter } from "./worker-adapter.ts";
import { adapterExecId } from "./worker-name.ts";
import { WORKER_LABEL } from "./worker-sandbox.ts";

const NAME = "aimi-shop-1";
const ENDED = {
  exitCode: undefined,
  signal: undefined,
  endedAt: new Date(0),
  stdoutBytes: 0,
  stderrBytes: 0,
};
const START = { request: {}, env: {} } as Parameters<WorkerAdapter["start"]>[1];

/** A worker whose adapter another process has begun to start, and whose container ends before this one gets to it. */
async function endingWorker() {
  const [store, clock] = [new MemoryStore(), new HandClock()];
  const labels = { [WORKER_LABEL.swarm]: "swarm" };
  const worker = sandboxRecord("box", { name: NAME, labels, state: "running" });
  const exec = execRecord("box", adapterExecId("swarm", NAME), { status: "running" });
  await store.sandboxes.insert(worker);
  await store.execs.insert(exec);
  const gone = () => Promise.reject(new AidoError("CONTAINER_LOST", "The container is no longer running"));
  const deps = {
    ...{ store, clock },
    sandboxes: { get: async () => worker, resolveRunning: async () => worker },
    execs: { startIn: async () => exec, giveStdin: gone },
  } as unknown as WorkerDeps;
  return { store, clock, worker, exec, adapter: new WorkerAdapter(deps) };
}

test("a worker that another process started and that is through with its task already is started", async () => {
  const { store, clock, worker, exec, adapter } = await endingWorker();
  const started = adapter.start(worker, START);
  await clock.advance(200);
  await store.sandboxes.update("box", { labels: { ...worker.labels, [WORKER_LABEL.adapter]: exec.id } });
  await clock.advance(200);
  await started;
});

test("a worker that ended before anybody wrote down that it had its task was started too", async () => {
  const { store, clock, worker, exec, adapter } = await endingWorker();
  const started = adapter.start(worker, START);
  await clock.advance(200);
  await store.execs.end("box", exec.id, { ...ENDED, status: "exited", exitCode: 0 });
  await clock.advance(200);
  await started;
});

test("a worker whose container was lost before it had its task is not called started", async () => {
  const { store, clock, worker, exec, adapter } = await endingWorker();
  const failed = expect(adapter.start(worker, START)).rejects.toMatchObject({ code: "CONTAINER_LOST" });
  await clock.advance(200);
  await store.execs.end("box", exec.id, { ...ENDED, status: "lost" });
  await clock.advance(200);
  await failed;
});

test("nobody waits for ever for a process that was killed while it started a worker", async () => {
  const { clock, worker, adapter } = await endingWorker();
  const failed = expect(adapter.start(worker, START)).rejects.toMatchObject({ code: "CONTAINER_LOST" });
  await clock.advance(60_000);
  await failed;
});
