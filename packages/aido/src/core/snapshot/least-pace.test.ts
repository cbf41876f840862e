import { expect, test } from "vitest";
import { HandClock } from "../../../test/exec/hand-clock.ts";
import { atLeastPace } from "./least-pace.ts";

const MINUTE = 60_000;

/** Takes a piece each minute. */
function slowly(clock: HandClock, bytes: number, pieces: number) {
  const source = async function* () {
    for (let piece = 0; piece < pieces; piece += 1) yield new Uint8Array(bytes);
  };
  return atLeastPace({ clock, what: "The upload of box" }, source(), async (files, signal) => {
    let taken = 0;
    for await (const { length } of files) {
      await clock.sleep(MINUTE, signal);
      taken += length;
    }
    return taken;
  });
}

test("a transfer may take the longer the more there is", async () => {
  const clock = new HandClock();
  const done = slowly(clock, 4 * 1024 * 1024, 60);
  await clock.advance(61 * MINUTE);
  expect(await done).toBe(60 * 4 * 1024 * 1024);
});

test("one that takes it drop by drop is given up", async () => {
  const clock = new HandClock();
  const done = slowly(clock, 1000, 600);
  const failed = expect(done).rejects.toMatchObject({
    code: "DEADLINE_EXCEEDED",
    message: expect.stringMatching(/^The upload of box is too slow: \d+ bytes in 305 s$/),
  });
  await clock.advance(6 * MINUTE);
  await failed;
});

test("one that takes nothing at all and heeds no signal is given up too", async () => {
  const clock = new HandClock();
  const never = () => new Promise<never>(() => undefined);
  const failed = expect(
    atLeastPace({ clock, what: "It" }, (async function* () {})(), never),
  ).rejects.toMatchObject({
    code: "DEADLINE_EXCEEDED",
  });
  await clock.advance(6 * MINUTE);
  await failed;
});

test("one that is cancelled has cleared away what it began when its caller hears of it", async () => {
  const clock = new HandClock();
  const controller = new AbortController();
  let isCleared = false;
  const carry = async (_: unknown, signal: AbortSignal) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    await new Promise(setImmediate);
    isCleared = true;
    throw signal.reason;
  };
  const source = (async function* () {})();
  const done = atLeastPace({ clock, what: "It", signal: controller.signal }, source, carry);
  controller.abort();
  expect(await done.catch(() => isCleared)).toBe(true);
});

test("one that is cancelled and clears nothing away is left behind after a moment", async () => {
  const clock = new HandClock();
  const controller = new AbortController();
  const never = () => new Promise<never>(() => undefined);
  const source = (async function* () {})();
  const failed = expect(
    atLeastPace({ clock, what: "It", signal: controller.signal }, source, never),
  ).rejects.toMatchObject({ name: "AbortError" });
  controller.abort();
  await clock.advance(20_000);
  await failed;
});
