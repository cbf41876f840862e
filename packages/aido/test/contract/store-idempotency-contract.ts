import { describe, expect, test } from "vitest";
import type { IdempotencyStore, KeyedRequest } from "../../src/core/access/idempotency.ts";
import { START } from "./records.ts";

const at = (ms: number) => new Date(START + ms);
const asked = (holder: string, changes: Partial<KeyedRequest> = {}): KeyedRequest => ({
  owner: "me",
  key: "k1",
  fingerprint: "f1",
  holder,
  at: at(0),
  ...changes,
});
const ANSWER = { status: 201, body: '{"id":"a"}' };

/** What every store of kept answers must do; each backend's test file calls it. */
export function storeIdempotencyContract(
  name: string,
  open: () => Promise<{ store: { idempotency: IdempotencyStore } } & AsyncDisposable>,
): void {
  describe(`${name} kept answers`, () => {
    test("a key is the first request's to answer, and its answer is everybody's", async () => {
      await using opened = await open();
      const { idempotency } = opened.store;
      const first = asked("p1");
      expect(await idempotency.begin(first)).toBeUndefined();
      expect(await idempotency.begin(asked("p2", { at: at(5) }))).toEqual({ ...first, answer: undefined });
      expect(await idempotency.begin(asked("p2", { owner: "they" }))).toBeUndefined();
      expect(await idempotency.finish(first, ANSWER)).toBe(true);
      expect(await idempotency.begin(asked("p2", { fingerprint: "f2" }))).toEqual({
        ...first,
        answer: ANSWER,
      });
    });

    test("a request that fails frees its key, and no other's", async () => {
      await using opened = await open();
      const { idempotency } = opened.store;
      const first = asked("p1");
      await idempotency.begin(first);
      await idempotency.abandon(asked("p2"));
      await idempotency.abandon(asked("p1", { at: at(1) }));
      expect(await idempotency.begin(asked("p2"))).toBeDefined();
      await idempotency.abandon(first);
      expect(await idempotency.begin(asked("p2"))).toBeUndefined();
    });

    test("of several who find a key left behind one gets it, and who left it cannot answer any more", async () => {
      await using opened = await open();
      const { idempotency } = opened.store;
      const dead = asked("dead");
      await idempotency.begin(dead);
      const second = asked("p2", { at: at(10) });
      expect(await idempotency.begin(second, dead)).toBeUndefined();
      expect(await idempotency.begin(asked("p3", { at: at(10) }), dead)).toEqual({
        ...second,
        answer: undefined,
      });
      expect(await idempotency.finish(dead, ANSWER)).toBe(false);
      await idempotency.abandon(dead);
      expect(await idempotency.finish(second, ANSWER)).toBe(true);
    });

    test("an answer is not replaced, nor given twice", async () => {
      await using opened = await open();
      const { idempotency } = opened.store;
      const first = asked("p1");
      await idempotency.begin(first);
      await idempotency.finish(first, ANSWER);
      expect(await idempotency.begin(asked("p2"), first)).toMatchObject({ answer: ANSWER });
      expect(await idempotency.finish(first, { status: 500, body: "" })).toBe(false);
      await idempotency.abandon(first);
      expect(await idempotency.begin(asked("p2"))).toMatchObject({ answer: ANSWER });
    });

    test("old keys are forgotten", async () => {
      await using opened = await open();
      const { idempotency } = opened.store;
      await idempotency.begin(asked("p1"));
      await idempotency.begin(asked("p1", { key: "k2", at: at(10) }));
      await idempotency.prune(at(10));
      expect(await idempotency.begin(asked("p2"))).toBeUndefined();
      expect(await idempotency.begin(asked("p2", { key: "k2" }))).toBeDefined();
    });
  });
}
