import { expect, test } from "vitest";
import { DAY_MS, tierBed } from "../../../test/tier/tier-bed.ts";

test("S2-62 S2-65 the first collection of a process asks for all images once, and takes no claim of an owner whose image counts", async () => {
  await using bed = tierBed({ autoCommit: true });
  for (let count = 0; count < 20; count++) await bed.stopped();
  const asked: unknown[] = [];
  const { committedImages } = bed.driver;
  bed.driver.committedImages = async (id) => {
    asked.push(id);
    return await committedImages.call(bed.driver, id);
  };
  const { take } = bed.store.claims;
  bed.store.claims.take = async (...claim) => {
    asked.push(claim);
    return await take.apply(bed.store.claims, claim);
  };
  await bed.collectorOf("p2").collect();
  expect(asked).toEqual([undefined]);
  expect(await bed.images()).toHaveLength(20);
});

test("an image that no record counts on goes, and so does one of a sandbox that is gone", async () => {
  await using bed = tierBed({ autoCommit: true });
  const [id, gone] = [await bed.stopped(), await bed.stopped()];
  const { warmImage } = (await bed.record(id)) ?? {};
  await bed.driver.commit(id);
  await bed.store.sandboxes.transition(gone, "stopped", "deleted", {});
  await bed.clock.advance(DAY_MS / 2);
  await bed.collectorOf("p2").collect();
  expect(await bed.images()).toEqual([warmImage]);
});
