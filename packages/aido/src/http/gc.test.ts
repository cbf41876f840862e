import { expect, test } from "vitest";
import { ApiBed } from "../../test/server/api-bed.ts";

test("S2-62 S2-63 sandboxes that were stopped for long are moved by an operator's request, and by nobody else's", async () => {
  await using bed = await ApiBed.open({ guarded: true, env: { SANDBOX_GC_HOT_RETENTION: "60" } });
  const [ada, boss] = [await bed.key("ada"), await bed.key("boss", { scopes: ["admin"] })];
  const [long, short] = [await bed.sandbox(ada), await bed.sandbox(ada)];
  for (const id of [long, short]) await bed.client(ada).sandboxes.stop(id);
  await bed.store.sandboxes.update(long, { tierSince: new Date(Date.now() - 120_000) });
  expect(await bed.post("/api/gc", {}, { key: ada })).toMatchObject({ status: 403 });
  const found = { warmed: [long], cooled: [], removed: [], failed: [] };
  expect((await bed.post("/api/gc", { dryRun: true }, { key: boss })).json).toEqual(found);
  expect(await bed.client(boss).gc.collect({ dryRun: true })).toEqual(found);
  expect(await bed.store.sandboxes.get(long)).toMatchObject({ tier: "hot" });
  expect(await bed.client(boss).gc.collect()).toEqual(found);
  expect(await bed.store.sandboxes.get(long)).toMatchObject({ tier: "warm" });
  expect(await bed.store.sandboxes.get(short)).toMatchObject({ tier: "hot" });
  expect((await bed.post("/api/gc", {}, { key: boss })).json).toEqual({ ...found, warmed: [] });
});
