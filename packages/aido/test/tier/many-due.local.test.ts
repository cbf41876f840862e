import { expect, test } from "vitest";
import { sandboxRecord } from "../contract/records.ts";
import { Mishap } from "./mishap-suite.ts";

const COUNT = 10_000;

test("10,000 sandboxes that are due at once go in one tick, and a command is answered meanwhile", {
  timeout: 300_000,
}, async () => {
  await using place = await Mishap.make("local", "host", {});
  const aido = await place.open();
  const long = new Date(Date.now() - 365 * 86_400_000);
  for (let index = 0; index < COUNT; index++) {
    await aido.store.sandboxes.insert(
      sandboxRecord(`due-${index}`, {
        driver: "local",
        state: "stopped",
        endReason: "idle",
        tier: "cold",
        tierSince: long,
        history: false,
      }),
    );
  }
  const kept = await place.stopped(aido, "hot");
  let isOver = false;
  const collecting = aido.gc.collect().finally(() => {
    isOver = true;
  });
  let answered = 0;
  while (!isOver && answered < 20) {
    await aido.sandboxes.start(kept);
    await place.expectBack(aido, kept);
    await aido.sandboxes.stop(kept);
    answered += 1;
  }
  expect(answered).toBeGreaterThan(0);
  const report = await collecting;
  expect(report).toMatchObject({ warmed: [], cooled: [], failed: [] });
  expect(report.removed).toHaveLength(COUNT);
  expect((await aido.store.sandboxes.list()).map(({ id }) => id)).toEqual([kept]);
  expect(await aido.gc.collect()).toEqual({ warmed: [], cooled: [], removed: [], failed: [] });
  await aido.sandboxes.destroy(kept);
});
