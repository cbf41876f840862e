import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sandboxRecord } from "../../../test/contract/records.ts";
import { DataDir } from "../data-dir.ts";
import { HistorySlots } from "./history-slots.ts";

function makeSlots() {
  const place = mkdtempSync(join(tmpdir(), "aido-slots-"));
  const dataDir = new DataDir(place);
  const supervisors = {
    get: () => {
      throw new Error("no sandbox is asked for anything here");
    },
  };
  return {
    slots: new HistorySlots({ supervisors, dataDir, maxBytes: 1024 * 1024 }),
    dataDir,
    [Symbol.dispose]: () => rmSync(place, { recursive: true, force: true }),
  };
}

test("work on one workspace is done in turns, also after a failure; others do not wait", async () => {
  using made = makeSlots();
  const [one, two] = [sandboxRecord("one"), sandboxRecord("two")];
  const done: string[] = [];
  let open = () => undefined as unknown;
  const gate = new Promise((resolve) => {
    open = () => resolve(undefined);
  });
  const first = made.slots.inTurn(one, async () => {
    await gate;
    done.push("first");
    throw new Error("first failed");
  });
  const second = made.slots.inTurn(one, async () => done.push("second"));
  await made.slots.inTurn(two, async () => done.push("other"));
  expect(made.slots.settled("one")).toBeDefined();
  expect(made.slots.settled("two")).toBeUndefined();
  open();
  await expect(first).rejects.toThrow("first failed");
  await second;
  await made.slots.settled("one");
  expect(done).toEqual(["other", "first", "second"]);
});

test("the ones not used for the longest time are put away, never one at work", async () => {
  using made = makeSlots();
  let open = () => undefined as unknown;
  const gate = new Promise((resolve) => {
    open = () => resolve(undefined);
  });
  const busy = sandboxRecord("busy");
  const slot = made.slots.get(busy);
  const working = made.slots.inTurn(busy, () => gate);
  const early = made.slots.get(sandboxRecord("s0"));
  for (let i = 0; i < 100; i++) await made.slots.inTurn(sandboxRecord(`s${i}`), async () => undefined);
  expect(made.slots.get(busy)).toBe(slot);
  expect(made.slots.get(sandboxRecord("s0"))).not.toBe(early);
  const late = made.slots.get(sandboxRecord("s99"));
  expect(made.slots.get(sandboxRecord("s99"))).toBe(late);
  open();
  await working;
  await made.slots.close();
  expect(existsSync(made.dataDir.sandbox("busy"))).toBe(false);
});
