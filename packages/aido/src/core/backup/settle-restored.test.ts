import { expect, test } from "vitest";
import { sandboxBed } from "../../../test/sandbox/sandbox-bed.ts";
import { MemoryPool } from "../../stores/memory/memory-pool.ts";
import { settleRestored } from "./settle-restored.ts";

test("a sandbox whose container was not restored with it begins anew, whether it ran or not", async () => {
  await using bed = sandboxBed();
  const running = await bed.sandboxes.create({});
  const stopped = await bed.sandboxes.create({});
  await bed.sandboxes.stop(stopped.id);
  for (const { id } of [running, stopped]) await bed.driver.remove(id);
  const store = Object.assign(bed.store, { pool: new MemoryPool(bed.store.sandboxes) });
  expect(await settleRestored(store, { from: "/a", to: "/b" }, bed.clock.now())).toBe(2);
  for (const { id } of [running, stopped]) {
    expect(await bed.sandboxes.get(id)).toMatchObject({ state: "stopped" });
    expect(await bed.sandboxes.start(id)).toMatchObject({ state: "running" });
  }
});
