import { expect, test } from "vitest";
import { AdapterBed } from "../../../swarm-adapter/testing/adapter-bed.ts";
import type { WorkerMessage } from "../messages/message.ts";
import { PLAN } from "../testing/swarm-bed.ts";
import { storyJson } from "../testing/task-file-text.ts";
import { afterMessage, isAllAtOrigin, newRecord, type WorkerRecord } from "./worker-record.ts";

const RECORD: WorkerRecord = { ...newRecord("s", "aimi-swarm-a", PLAN), startedAt: "2026-01-05T00:00:00Z" };
const WRITE = 'echo "by $story" > "$story.txt"';

/** As whoever follows the adapter has it in the end. */
async function recordAfter(script: (bed: AdapterBed) => string): Promise<WorkerRecord> {
  using bed = new AdapterBed([storyJson("US-001")]);
  const { last } = await bed.run({ env: bed.agent(script(bed)) });
  return afterMessage(RECORD, last as unknown as WorkerMessage, { offset: 1, known: new Set() });
}

test("an adapter whose push was refused is understood: origin has not all of its work", async () => {
  const refuse = (bed: AdapterBed) => `${WRITE}
printf '#!/bin/sh\\nexit 1\\n' > ${bed.bed.origin}/hooks/pre-receive && chmod +x ${bed.bed.origin}/hooks/pre-receive`;
  expect(isAllAtOrigin(await recordAfter(refuse))).toBe(false);
  // Also when the worker could not go on, and tried to push what there was.
  expect(isAllAtOrigin(await recordAfter((bed) => `${refuse(bed)}\nexit 1`))).toBe(false);
  expect(isAllAtOrigin(await recordAfter(() => `${WRITE}\nexit 1`))).toBe(true);
});

test("without a last word, only a worker that was never begun has nothing to lose", () => {
  expect(isAllAtOrigin(RECORD)).toBe(false);
  expect(isAllAtOrigin({ ...RECORD, startedAt: undefined })).toBe(true);
  expect(isAllAtOrigin({ ...RECORD, startedAt: undefined, stderrOffset: 7 })).toBe(false);
});

test("what is in a container alone is so until the worker has completed, whatever ends it before", () => {
  const stopped = { status: "stopped", prUrl: null, errors: [] } as const;
  expect(isAllAtOrigin({ ...RECORD, last: stopped })).toBe(true);
  expect(isAllAtOrigin({ ...RECORD, last: stopped, isKept: true })).toBe(false);
});
