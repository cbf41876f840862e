import { expect, test } from "vitest";
import { execRecord, sandboxRecord } from "../../../test/contract/records.ts";
import { MemoryStore } from "../../stores/memory/memory-store.ts";
import type { ExecEnd } from "../store/store.ts";
import { UnrecordedExecs } from "./unrecorded-execs.ts";

const RECORD = sandboxRecord("aaaa", { state: "running" });
const END: ExecEnd = {
  status: "exited",
  exitCode: 0,
  signal: undefined,
  endedAt: new Date(0),
  stdoutBytes: 0,
  stderrBytes: 0,
};

async function makeBed() {
  const store = new MemoryStore();
  await store.sandboxes.insert(RECORD);
  const own = new Set<string>();
  const recorded = new Set<string>();
  const entries: (readonly string[])[] = [];
  /** Those that have ended with nobody listening. */
  const over = new Set<string>();
  const open = () =>
    new UnrecordedExecs({
      store: store.execs,
      history: {
        isRecorded: (_record, id) => recorded.has(id),
        recordExecs: async (_record, ids) => {
          entries.push(ids);
          for (const id of ids) recorded.add(id);
        },
      },
      running: async () => {
        for (const id of over) await store.execs.end("aaaa", id, END);
      },
      isOwn: (_sandboxId, id) => own.has(id),
    });
  return {
    open,
    own,
    recorded,
    entries,
    over,
    begin: async (...ids: string[]) => {
      for (const id of ids) await store.execs.insert(execRecord("aaaa", id, { unrecorded: true }));
    },
    end: (id: string) => store.execs.end("aaaa", id, END),
    marked: async () => (await store.execs.unrecorded("aaaa")).map(({ id }) => id),
  };
}

test("what has ended unrecorded is one entry for all, oldest first; what runs and what is recorded is let be", async () => {
  const bed = await makeBed();
  await bed.begin("old", "runs", "quiet", "mine", "done");
  for (const id of ["old", "mine", "done"]) await bed.end(id);
  bed.over.add("quiet");
  bed.own.add("mine");
  bed.recorded.add("done");
  const { running, recording } = await bed.open().take(RECORD);
  await recording;
  expect(bed.entries).toEqual([["old", "quiet"]]);
  expect(running.map(({ id }) => id)).toEqual(["runs"]);
});

test("is looked for once when nothing is left, and again as long as something runs elsewhere", async () => {
  const bed = await makeBed();
  const execs = bed.open();
  await bed.begin("one", "two");
  await bed.end("one");
  await Promise.all([execs.caughtUp(RECORD), execs.caughtUp(RECORD)]);
  expect(bed.entries).toEqual([["one"]]);
  bed.over.add("two");
  await execs.caughtUp(RECORD);
  expect(bed.entries).toEqual([["one"], ["two"]]);
  expect(execs.caughtUp(RECORD)).toBeUndefined();
  await bed.begin("three");
  await bed.end("three");
  execs.lookAgain("aaaa");
  await execs.caughtUp(RECORD);
  expect(bed.entries.at(-1)).toEqual(["three"]);
});

test("marks are taken back in batches, also those that former processes left", async () => {
  const bed = await makeBed();
  for (let round = 1; round <= 3; round++) {
    const ids = Array.from({ length: 30 }, (_, at) => `e${round}-${at}`);
    await bed.begin(...ids);
    const execs = bed.open();
    await execs.caughtUp({ ...RECORD, state: "stopped" });
    for (const id of ids) {
      await bed.end(id);
      bed.recorded.add(id);
      execs.recorded("aaaa", id);
    }
    expect(await bed.marked()).toHaveLength(30 * round);
  }
  await bed.open().caughtUp(RECORD);
  expect(await bed.marked()).toHaveLength(90 - 64);
  expect(bed.entries).toEqual([]);
});
