import { expect, test } from "vitest";
import { FastClock } from "./fast-clock.ts";

test("time goes on while somebody sleeps, and hardly while the machine does not get to its process", async () => {
  const clock = new FastClock();
  const start = clock.now().getTime();
  await clock.sleep(10_000);
  const slept = clock.now().getTime();
  expect(slept - start).toBeGreaterThanOrEqual(10_000);
  for (const end = performance.now() + 200; performance.now() < end; );
  expect(clock.now().getTime() - slept).toBeLessThanOrEqual(4_000);
});
