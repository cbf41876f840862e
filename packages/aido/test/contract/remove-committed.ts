import type { Driver } from "../../src/core/driver/driver.ts";

/** One that another was made from goes after that one. */
export async function removeCommitted(driver: Driver): Promise<void> {
  for (let left = await driver.committedImages(); left.length > 0; ) {
    for (const { reference } of left) await driver.removeImage(reference);
    const still = await driver.committedImages();
    if (still.length === left.length) throw new Error(`images stay: ${still.map((each) => each.reference)}`);
    left = still;
  }
}
