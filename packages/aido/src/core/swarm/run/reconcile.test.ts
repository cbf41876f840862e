import { AidoError } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import type { WorkerStatus } from "../state/swarm-state.ts";
import type { FakeWorker } from "../testing/fake-workers.ts";
import { SwarmBed } from "../testing/swarm-bed.ts";
import { reconcile } from "./reconcile.ts";

type Container = "missing" | ((worker: FakeWorker) => void);
const start = (worker: FakeWorker) => {
  worker.started = { request: {} as never, env: {} };
};
const running: Container = start;
const exited =
  (code: number): Container =>
  (worker) => {
    start(worker);
    worker.finish(code);
  };
const paused: Container = (worker) => {
  start(worker);
  worker.dockerState = "paused";
};
const fresh: Container = () => undefined;

test.each<[string, WorkerStatus, Container, WorkerStatus]>([
  ["S1-52 what agrees stays", "running", running, "running"],
  ["S1-52 what agrees stays", "pending", fresh, "pending"],
  ["S1-53 a zombie has failed", "running", "missing", "failed"],
  ["S1-53 a zombie has failed", "pending", "missing", "failed"],
  ["S1-54 a silent completion has completed", "running", exited(0), "completed"],
  ["S1-55 a silent failure has failed", "running", exited(1), "failed"],
  ["S1-36 S1-56 an unexpected stop is stopped", "running", paused, "stopped"],
  ["S1-57 what has started already runs", "pending", running, "running"],
  ["what ended before it was seen to run", "pending", exited(3), "failed"],
  ["an end is final", "completed", "missing", "completed"],
  ["an end is final", "stopped", running, "stopped"],
])("%s (%s)", async (_, status, container, expected) => {
  using bed = await registered(status, container);
  const before = bed.onDisk();
  const after = await reconcile(before, { workers: bed.workers, now: new Date("2027-01-01T00:00:00Z") });
  expect(after.containers[0]?.status).toBe(expected);
  if (expected === status) expect(after).toBe(before);
  else expect(after.updatedAt).toBe("2027-01-01T00:00:00.000Z");
});

test("S1-53 a worker whose container was not made yet is no zombie", async () => {
  using bed = new SwarmBed();
  const before = await bed.begin(await bed.tasks("login"));
  expect(await reconcile(before, { workers: bed.workers, now: new Date() })).toBe(before);
});

test("S1-53 another container of the same name is not the worker's", async () => {
  using bed = await registered("running", running);
  const state = bed.onDisk();
  const other = {
    ...state,
    containers: state.containers.map((entry) => ({ ...entry, containerId: "a".repeat(64) })),
  };
  const after = await reconcile(other, { workers: bed.workers, now: new Date() });
  expect(after.containers[0]?.status).toBe("failed");
});

test("S1-51 an engine that does not answer changes nothing", async () => {
  using bed = await registered("running", running);
  bed.workers.engineError = new AidoError("RUNTIME_UNAVAILABLE", "gone");
  await expect(
    bed.state.update((state) => reconcile(state, { workers: bed.workers, now: new Date() })),
  ).rejects.toMatchObject({ code: "RUNTIME_UNAVAILABLE" });
  expect(bed.statuses()).toEqual({ login: "running" });
});

async function registered(status: WorkerStatus, container: Container): Promise<SwarmBed> {
  const bed = new SwarmBed();
  await bed.begin(await bed.tasks("login"));
  const request = { name: "aimi-swarm-login", isolation: "sysbox" } as never;
  const { containerId } = await bed.workers.create(request);
  await bed.state.update((state) => ({
    ...state,
    containers: state.containers.map((entry) => ({ ...entry, status, containerId })),
  }));
  if (container === "missing") await bed.workers.remove("aimi-swarm-login");
  else container(bed.worker("login"));
  return bed;
}
