import { describe, expect, test } from "vitest";
import { HandClock } from "../../../test/exec/hand-clock.ts";
import { fakePresence } from "../../../test/processes/fake-presence.ts";
import { MemoryStore } from "../../stores/memory/memory-store.ts";
import { type BatchPlan, BatchService } from "./batch-service.ts";

const ME = { owner: "me", isOperator: false };
const DAY = 86_400_000;
const LOGGER = { debug() {}, info() {}, warn() {}, error() {}, child: () => LOGGER };

function bed(store = new MemoryStore(), self = "p1", clock = new HandClock()) {
  const dead = new Set<string>();
  const presence = fakePresence(self, { leases: store.leases, clock, dead });
  return {
    store,
    clock,
    dead,
    presence,
    service: new BatchService({ store, clock, presence, logger: LOGGER, ttlMs: DAY }),
  };
}

type Plan = BatchPlan<{ n: number }>;
const plan = (changes: Partial<Plan> = {}): Plan => ({
  kind: "exec",
  id: "",
  count: 3,
  parallel: false,
  work: async (n) => ({ n }),
  ...changes,
});
const never = new AbortController().signal;

/** Work that ends when it is told to. */
function gates(count: number) {
  const begun: number[] = [];
  const open: (() => void)[] = [];
  const waits = Array.from({ length: count }, (_, n) => new Promise<void>((resolve) => (open[n] = resolve)));
  let wake = (): void => {};
  const started = async (atLeast: number) => {
    while (begun.length < atLeast) await new Promise<void>((resolve) => (wake = resolve));
  };
  const work = async (n: number, signal: AbortSignal) => {
    begun.push(n);
    wake();
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    });
    await Promise.race([waits[n], aborted]);
    return { n };
  };
  return { begun, started, work, open: (n: number) => open[n]?.() };
}

describe("a batch", () => {
  test("S2-32 in sequence does one part after the other, in parallel ten at once; results are in the order of the request", async () => {
    const { service } = bed();
    const one = gates(3);
    const running = service.run(plan({ work: one.work }), ME, never);
    await one.started(1);
    one.open(2);
    one.open(1);
    expect(one.begun).toEqual([0]);
    one.open(0);
    expect((await running).items).toEqual([{ n: 0 }, { n: 1 }, { n: 2 }]);

    const many = gates(25);
    const parallel = service.run(plan({ count: 25, parallel: true, work: many.work }), ME, never);
    await many.started(10);
    expect(many.begun).toHaveLength(10);
    for (let n = 24; n >= 0; n -= 1) many.open(n);
    expect((await parallel).items.map((item) => ("n" in item ? item.n : -1))).toEqual(
      Array.from({ length: 25 }, (_, n) => n),
    );
  });

  test("S2-32 a part that fails leaves the others alone, and says what it was about", async () => {
    const { service } = bed();
    const work = async (n: number) => {
      if (n === 1) throw new Error("secret path");
      return { n };
    };
    const about = (n: number) => ({ sidecarUrl: `u${n}` });
    const { items, batchId } = await service.run(plan({ work, about }), ME, never);
    expect(batchId).toMatch(/^batch-[0-9a-f-]{36}$/);
    expect(items).toEqual([
      { sidecarUrl: "u0", n: 0 },
      {
        sidecarUrl: "u1",
        error: { code: "INTERNAL_SERVER_ERROR", message: expect.not.stringContaining("secret") },
      },
      { sidecarUrl: "u2", n: 2 },
    ]);
    expect(await service.get(batchId, ME)).toMatchObject({ state: "done", count: 3, ended: 3, failed: 1 });
  });

  test("S2-33 S2-37 is collected once; nobody else sees it, an operator does", async () => {
    const { service } = bed();
    const { batchId } = await service.run(plan(), ME, never);
    const other = { owner: "other", isOperator: false };
    await expect(service.collect(batchId, other)).rejects.toMatchObject({ code: "RESOURCE_NOT_FOUND" });
    expect(await service.list(other)).toEqual([]);
    expect(await service.list({ owner: "x", isOperator: true })).toHaveLength(1);
    const { record, items } = await service.collect(batchId, ME);
    expect([record.kind, items]).toEqual(["exec", [{ n: 0 }, { n: 1 }, { n: 2 }]]);
    await expect(service.collect(batchId, ME)).rejects.toMatchObject({
      code: "RESOURCE_NOT_FOUND",
      message: expect.stringContaining("Batch not found"),
    });
  });

  test("S2-33 that runs cannot be collected, goes on when its caller leaves, and can be collected then", async () => {
    const { service } = bed();
    const gate = gates(1);
    const leave = new AbortController();
    const running = service.run(plan({ id: "b1", count: 1, work: gate.work }), ME, leave.signal);
    await gate.started(1);
    leave.abort();
    await expect(running).rejects.toBeDefined();
    await expect(service.collect("b1", ME)).rejects.toMatchObject({ code: "EXECUTION_CONFLICT" });
    const again = service.run(
      plan({ id: "b1", count: 1, work: () => Promise.reject(new Error("twice")) }),
      ME,
      never,
    );
    gate.open(0);
    expect((await again).items).toEqual([{ n: 0 }]);
    expect((await service.collect("b1", ME)).items).toEqual([{ n: 0 }]);
  });

  test("with an id that was used is not run again, and another one's id is refused", async () => {
    const { service } = bed();
    let runs = 0;
    const work = async (n: number) => {
      runs += 1;
      return { n };
    };
    await service.run(plan({ id: "b1", work }), ME, never);
    expect((await service.run(plan({ id: "b1", work }), ME, never)).items).toEqual([
      { n: 0 },
      { n: 1 },
      { n: 2 },
    ]);
    expect(runs).toBe(3);
    const other = service.run(plan({ id: "b1", work }), { owner: "other", isOperator: true }, never);
    await expect(other).rejects.toMatchObject({ code: "EXECUTION_CONFLICT" });
    const longer = service.run(plan({ id: "b1", count: 4, work }), ME, never);
    await expect(longer).rejects.toMatchObject({ code: "EXECUTION_CONFLICT" });
  });

  test("S2-33 whose process died says so for what had not ended, and nothing runs twice", async () => {
    const first = bed();
    const gate = gates(3);
    void first.service.run(plan({ id: "b1", work: gate.work }), ME, never);
    await gate.started(1);
    gate.open(0);
    await gate.started(2);
    const next = bed(first.store, "p2");
    next.dead.add("p1");
    await next.service.recover();
    expect(await next.service.get("b1", ME)).toMatchObject({ state: "lost", ended: 1 });
    const again = await next.service.run(
      plan({ id: "b1", work: () => Promise.reject(new Error("twice")) }),
      ME,
      never,
    );
    const lost = {
      error: {
        code: "CONTAINER_LOST",
        message: expect.stringContaining("server ended"),
        hint: expect.any(String),
      },
    };
    expect(again.items).toEqual([{ n: 0 }, lost, lost]);
    expect((await next.service.collect("b1", ME)).items).toEqual([{ n: 0 }, lost, lost]);
  });

  test("whose process was there before a reboot is lost, one of a process that lives elsewhere goes on", async () => {
    const store = new MemoryStore();
    const clock = new HandClock();
    const lives = bed(store, "other-boot", clock);
    // Time stands still for the one without power: it renews nothing.
    const died = bed(store, "boot-before");
    for (const [id, { service }] of [["b1", lives] as const, ["b2", died] as const]) {
      const gate = gates(3);
      void service.run(plan({ id, work: gate.work }), ME, never);
      await gate.started(1);
    }
    const next = bed(store, "this-boot", clock);
    await next.service.recover();
    await expect(next.service.collect("b2", ME)).rejects.toMatchObject({ code: "EXECUTION_CONFLICT" });
    await clock.advance(61_000);
    await next.service.recover();
    expect(await store.batches.get("b1")).toMatchObject({ state: "running" });
    expect(await store.batches.get("b2")).toMatchObject({ state: "lost" });
    await next.service.collect("b2", ME);
  });

  test("that is cancelled begins no further part, ends those that run, and keeps what has ended", async () => {
    const { service } = bed();
    const gate = gates(3);
    const running = service.run(plan({ id: "b1", work: gate.work }), ME, never);
    await gate.started(1);
    gate.open(0);
    await gate.started(2);
    expect(await service.cancel("b1", ME)).toMatchObject({ state: "cancelled", ended: 3, failed: 2 });
    const cancelled = { error: { code: "CANCELLED", message: "The batch was cancelled" } };
    expect((await running).items).toEqual([{ n: 0 }, cancelled, cancelled]);
    expect(gate.begun).toEqual([0, 1]);
    expect((await service.collect("b1", ME)).items).toEqual([{ n: 0 }, cancelled, cancelled]);
  });

  test("ends when the service closes, and what it came to is on record", async () => {
    const { service, store } = bed();
    const gate = gates(2);
    const running = service.run(plan({ id: "b1", count: 2, work: gate.work }), ME, never);
    await gate.started(1);
    await service.close();
    await running;
    expect(await store.batches.get("b1")).toMatchObject({ state: "cancelled" });
    expect((await store.batches.items("b1")).size).toBe(2);
  });

  test("S2-33 is forgotten when its time is over", async () => {
    const { service, clock, store } = bed();
    await service.run(plan({ id: "b1" }), ME, never);
    await clock.advance(DAY - 1);
    await service.recover();
    expect(await store.batches.get("b1")).toBeDefined();
    await clock.advance(1);
    await service.recover();
    await expect(service.get("b1", ME)).rejects.toMatchObject({ code: "RESOURCE_NOT_FOUND" });
  });

  test("of which one answer is enough ends the others", async () => {
    const { service } = bed();
    const gate = gates(3);
    const running = service.run(
      plan({ parallel: true, work: gate.work, suffices: ({ n }) => n === 1 }),
      ME,
      never,
    );
    await gate.started(3);
    gate.open(1);
    const other = { error: { code: "CANCELLED", message: "Another sandbox has answered first" } };
    expect((await running).items).toEqual([other, { n: 1 }, other]);
  });

  test("whose results cannot be written still answers, with what was done as done", async () => {
    const store = new MemoryStore();
    const { service } = bed(store);
    const endItem = store.batches.endItem.bind(store.batches);
    store.batches.endItem = (id, position, ...rest) =>
      position === 1 ? Promise.reject(new Error("disk full")) : endItem(id, position, ...rest);
    const { items } = await service.run(plan({ id: "b1" }), ME, never);
    expect(items).toEqual([{ n: 0 }, { n: 1 }, { n: 2 }]);
    expect((await service.collect("b1", ME)).items[1]).toMatchObject({ error: { code: "OUTPUT_LOST" } });
  });

  test("keeps no secret, and counts with each part", async () => {
    const { service, store } = bed();
    const kept = ({ n }: { n: number }) => ({ n, token: "" });
    const counts = () => ({ total_input_tokens: 2 });
    await service.run(plan({ id: "b1", kept, counts }), ME, never);
    expect([...(await store.batches.items("b1")).values()]).toEqual([0, 1, 2].map((n) => ({ n, token: "" })));
    expect(await store.counters.read()).toMatchObject({ total_input_tokens: 6 });
  });
});
