import { describe, expect, test } from "vitest";
import { passUntil, sandboxBed } from "../../../test/sandbox/sandbox-bed.ts";
import { ApiBed } from "../../../test/server/api-bed.ts";

const FULL = { code: "QUOTA_EXCEEDED", details: { limit: 2 } };

describe("the capacity of an operator", () => {
  test("S2-129 one sandbox more than run is refused, however it is asked for, and nothing is left of it", async () => {
    await using bed = sandboxBed({ capacity: 2 });
    const [one, two] = [await bed.sandboxes.create({}), await bed.sandboxes.create({})];
    await expect(bed.sandboxes.create({})).rejects.toMatchObject(FULL);
    expect(await bed.sandboxes.list()).toHaveLength(2);
    await bed.sandboxes.stop(one.id);
    const three = await bed.sandboxes.create({});
    await expect(bed.sandboxes.start(one.id)).rejects.toMatchObject(FULL);
    await expect(bed.sandboxes.resolveRunning(one.id, { autoResume: true })).rejects.toMatchObject(FULL);
    expect(await bed.sandboxes.get(one.id)).toMatchObject({ state: "stopped", endReason: "stopped" });
    expect(await bed.sandboxes.start(two.id)).toMatchObject({ state: "running" });
    const prepared = await bed.sandboxes.prepare({});
    await expect(bed.sandboxes.launch(prepared.id)).rejects.toMatchObject(FULL);
    expect(await bed.sandboxes.get(prepared.id)).toMatchObject({ state: "stopped", endReason: "failed" });
    await bed.sandboxes.destroy(three.id);
    expect(await bed.sandboxes.start(one.id)).toMatchObject({ state: "running" });
  });

  test("S2-129 many that are asked for at once get no more than there is room for", async () => {
    await using bed = sandboxBed({ capacity: 3 });
    const asked = Promise.allSettled(Array.from({ length: 10 }, () => bed.sandboxes.create({})));
    await passUntil(bed, asked);
    const made = (await asked).filter(({ status }) => status === "fulfilled");
    expect(made).toHaveLength(3);
    expect((await bed.store.sandboxes.totals()).peak).toBe(3);
  });

  test("S2-129 one that has ended unseen, or could not be made, takes no room", async () => {
    await using bed = sandboxBed({ capacity: 1, images: ["here:1"] });
    await expect(bed.sandboxes.create({ image: "gone:1" })).rejects.toMatchObject({
      code: "IMAGE_NOT_FOUND",
    });
    const { id } = await bed.sandboxes.create({ image: "here:1" });
    await bed.driver.remove(id);
    expect(await bed.sandboxes.create({ image: "here:1" })).toMatchObject({ state: "running" });
    expect(await bed.sandboxes.get(id)).toMatchObject({ state: "stopped", endReason: "lost" });
  });

  test("S2-129 OPERATOR_MAX_CAPACITY bounds what all callers of a server have, and a batch says which parts failed", async () => {
    await using bed = await ApiBed.open({ guarded: true, env: { OPERATOR_MAX_CAPACITY: "2" } });
    const [one, two] = [await bed.key("one"), await bed.key("two")];
    expect((await bed.post("/api/jobs/0", {}, { key: one })).status).toBe(200);
    const batch = (await bed.post("/api/jobs/20", { count: 3, template_request: {} }, { key: two })).json;
    const failed = batch.sandboxes.filter((part: object) => "error" in part);
    expect(failed).toHaveLength(2);
    expect(failed[0].error).toMatchObject({ code: "QUOTA_EXCEEDED" });
    const refused = await bed.post("/api/sandbox", {}, { key: two });
    expect(refused.status).toBe(429);
    expect(refused.json.error).toMatchObject({
      ...FULL,
      hint: expect.stringContaining("OPERATOR_MAX_CAPACITY"),
    });
  });
});
