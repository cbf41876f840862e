import { expect, test } from "vitest";
import { sandboxBed } from "../../../test/sandbox/sandbox-bed.ts";

test("a limit that was asked for and nothing holds is said once, others are not", async () => {
  const enforced = { cpus: false, memory: false, pids: true, disk: false };
  await using bed = sandboxBed({ capabilities: { enforced } });
  await bed.sandboxes.create({});
  expect(bed.warnings).toEqual([]);
  for (let time = 0; time < 2; time += 1) {
    await bed.sandboxes.create({ limits: { memoryBytes: 64 * 1024 ** 2, pids: 20, diskBytes: 1024 ** 3 } });
  }
  expect(bed.warnings).toEqual([
    "The limit memory is not enforced on this machine for a sandbox as a whole: `aido doctor` says why",
  ]);
});
