import { AidoError } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { DAY_MS, tierBed } from "../../../test/tier/tier-bed.ts";

test("a container removed behind aido's back with nothing kept of it: the loss is told, at once and after a collection", async () => {
  await using bed = tierBed({ autoCommit: true });
  bed.driver.failNext("commit", new AidoError("DISK_FULL", "No space left"));
  const id = await bed.stopped();
  await bed.driver.remove(id);
  await expect(bed.sandboxes.start(id)).rejects.toMatchObject({ code: "CONTAINER_LOST" });
  await bed.clock.advance(DAY_MS);
  expect(await bed.gc.collect()).toMatchObject({ warmed: [], failed: [] });
  expect(await bed.record(id)).toMatchObject({ state: "stopped", tier: undefined });
  await expect(bed.sandboxes.start(id)).rejects.toMatchObject({ code: "CONTAINER_LOST" });
  expect(await bed.driver.list()).toEqual([]);
  await bed.sandboxes.destroy(id);
});
