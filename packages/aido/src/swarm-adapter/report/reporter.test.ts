import { expect, test } from "vitest";
import type { Clock } from "../../core/clock.ts";
import { MAX_MESSAGE_BYTES } from "../../core/swarm/messages/message.ts";
import { readOutput } from "../testing/adapter-bed.ts";
import { Reporter } from "./reporter.ts";
import { Scrubber } from "./scrubber.ts";

/** Time that passes only while somebody waits for it. */
class WaitingClock implements Clock {
  ms = 0;
  now(): Date {
    return new Date(this.ms);
  }
  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    signal?.throwIfAborted();
    this.ms += ms;
  }
}

function reporting(secrets: readonly string[] = [], reader?: Promise<void>) {
  let stdout = "";
  const clock = new WaitingClock();
  const scrubber = new Scrubber();
  scrubber.add(...secrets);
  const write = async (line: string) => {
    await reader;
    stdout += line;
  };
  const reporter = new Reporter({ write, clock, scrubber, env: { SWARM_ID: "nonsense" } });
  return { reporter, clock, output: () => readOutput(stdout) };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("S1-72 what the agent says is told at most once in two seconds, with all that came since", async () => {
  const { reporter, clock, output } = reporting();
  for (let count = 0; count < 100; count += 1) {
    reporter.say(`word ${count} `);
    await turn();
  }
  await reporter.complete("completed", undefined, []);
  const updates = output().messages.filter(({ type }) => type === "progress-update");
  expect(updates.length).toBeGreaterThan(2);
  expect((updates.length - 1) * 2_000).toBeLessThanOrEqual(clock.ms);
  expect(updates.every(({ payload }) => payload.storyId === "US-000")).toBe(true);
});

test("S1-27 what an agent said of one story is not told as if it were of the next", async () => {
  const { reporter, output } = reporting();
  reporter.story("US-001", "in_progress", "");
  reporter.say("first words");
  await turn();
  reporter.say("last words");
  reporter.story("US-001", "completed", "done");
  reporter.story("US-002", "in_progress", "");
  for (let count = 0; count < 5; count += 1) await turn();
  reporter.say("next words");
  for (let count = 0; count < 5; count += 1) await turn();
  await reporter.complete("completed", undefined, []);
  const said = output().messages.map(({ payload }) => payload.output);
  expect(said).toContain("first words");
  expect(said).toContain("next words");
  expect(said.join()).not.toContain("last words");
});

test("while nobody reads every story is kept, only so much of what was said waits, and the end waits for its reader", async () => {
  let read = () => {};
  const reader = new Promise<void>((resolve) => {
    read = resolve;
  });
  const { reporter, output } = reporting([], reader);
  const stories = Array.from({ length: 800 }, (_, index) => `US-${String(index + 1).padStart(3, "0")}`);
  for (const id of stories) {
    reporter.story(id, "in_progress", "");
    for (let count = 0; count < 4; count += 1) reporter.say("s".repeat(1_000));
    await turn();
    reporter.story(id, "completed", "o".repeat(2_000));
  }
  const ended = reporter.complete("completed", "https://forge.test/pull/1", []);
  expect(await Promise.race([ended.then(() => "ended"), turn().then(() => "waits")])).toBe("waits");
  read();
  await ended;
  const { last, steps, stdout, messages } = output();
  expect(last.payload.prUrl).toBe("https://forge.test/pull/1");
  expect(steps).toEqual(stories.flatMap((id) => [`${id} in_progress`, `${id} completed`]));
  expect(messages.filter(({ payload }) => payload.storyId === "US-000").length).toBeLessThan(3);
  expect(Buffer.byteLength(stdout)).toBeLessThan(1.5 * 1024 * 1024);
});

test("S1-30 errors beyond what a completion may hold are counted, and all fit one message", async () => {
  const { reporter, output } = reporting();
  await reporter.complete(
    "failed",
    undefined,
    Array.from({ length: 60 }, () => "😀".repeat(700)),
  );
  const { last, stdout } = output();
  expect(last.payload.errors).toHaveLength(50);
  expect(last.payload.errors?.at(-1)).toBe("and 11 more");
  expect(Buffer.byteLength(stdout)).toBeLessThanOrEqual(MAX_MESSAGE_BYTES);
});

test("S1-30 after the last message there is no other", async () => {
  const { reporter, output } = reporting();
  reporter.say("before");
  await reporter.fail("UNKNOWN_ERROR", "x".repeat(5_000));
  await reporter.complete("completed", undefined, []);
  reporter.story("US-001", "completed", "late");
  reporter.say("late");
  await turn();
  expect(output().last.payload).toMatchObject({ code: "UNKNOWN_ERROR" });
});

test("a secret that comes in pieces is never told, not even its beginning", async () => {
  const secret = "ghp_abcdefghijklmnop";
  const { reporter, output } = reporting([secret]);
  for (const char of `the token is ${secret}, said twice: ${secret}.`) {
    reporter.say(char);
    await turn();
    await turn();
  }
  reporter.story("US-001", "failed", `${secret} ${Buffer.from(secret).toString("base64")}`);
  await reporter.complete("completed", undefined, [secret, encodeURIComponent(secret)]);
  const { stdout, messages } = output();
  expect(stdout).not.toContain("ghp_");
  expect(messages.map(({ payload }) => payload.output).join("")).toContain("***");
});
