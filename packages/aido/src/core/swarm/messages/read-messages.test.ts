import { expect, test } from "vitest";
import { MAX_MESSAGE_BYTES } from "./message.ts";
import { readMessages } from "./read-messages.ts";

const line = (type: string, payload: object) =>
  `${JSON.stringify({
    type,
    timestamp: "2026-01-05T10:00:00Z",
    swarmId: "3f2b8c1e-7d4a-4c6b-9a10-0123456789ab",
    containerId: "0123456789ab",
    payload,
  })}\n`;
const PROGRESS = line("progress-update", { storyId: "US-001", status: "completed", output: "ä😀" });
const COMPLETION = line("completion", { status: "completed", prUrl: null, errors: [] });
const ERROR = line("error", { code: "AGENT_CRASH", message: "" });
const REQUEST = line("task-request", {
  taskFilePath: ".aimi/tasks/x.json",
  branchName: "x",
  repoUrl: "https://x.example/r",
});

test("S1-25 reads any number of progress updates, then the completion, however the bytes are cut", async () => {
  const text = `${PROGRESS}\r\n\n${PROGRESS}${COMPLETION}`;
  for (const size of [1, 7, 100, 100_000]) {
    expect((await read(text, size)).types).toEqual(["progress-update", "progress-update", "completion"]);
  }
  expect((await read(COMPLETION)).types).toEqual(["completion"]);
});

test("S1-29 an error is a last message too", async () => {
  expect(await read(PROGRESS + ERROR)).toEqual({ types: ["progress-update", "error"], problem: undefined });
});

test.each([
  ["nothing", "", "ends without a completion or error"],
  ["no last message", PROGRESS, "ends without a completion or error"],
  ["two last messages", COMPLETION + ERROR, "comes behind the last message"],
  ["progress behind the last message", COMPLETION + PROGRESS, "comes behind the last message"],
  ["noise behind the last message", `${COMPLETION}bye\n`, "comes behind the last message"],
  ["a line that is no JSON", `${PROGRESS}npm warn\n${COMPLETION}`, "is not JSON"],
  ["a message cut off", PROGRESS + COMPLETION.slice(0, -1), "is cut off"],
  ["the host's own message", REQUEST, "only the host sends"],
  ["a line that is too long", `${" ".repeat(MAX_MESSAGE_BYTES)}${COMPLETION}`, "has more than 65536 bytes"],
])("S1-30 refuses %s", async (_, text, problem) => {
  for (const size of [13, 100_000]) expect((await read(text, size)).problem).toContain(problem);
});

test("a line without end is refused after 64 KB, and its source is let go", async () => {
  let given = 0;
  let isReleased = false;
  async function* endless() {
    try {
      for (;;) {
        given += 1;
        yield Buffer.alloc(1024, "x");
      }
    } finally {
      isReleased = true;
    }
  }
  await expect(readMessages(endless()).next()).rejects.toThrow("has more than 65536 bytes");
  expect(given).toBe(65);
  expect(isReleased).toBe(true);
});

test("a worker that says nothing is waited for no longer than the caller wants", async () => {
  const abort = new AbortController();
  const silent = { [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => {}) }) };
  const next = readMessages(silent, { signal: abort.signal }).next();
  abort.abort();
  await expect(next).rejects.toMatchObject({ code: "CANCELLED" });
  await expect(readMessages(silent, { signal: abort.signal }).next()).rejects.toMatchObject({
    code: "CANCELLED",
  });
});

async function read(text: string, size = 64): Promise<{ types: string[]; problem: string | undefined }> {
  const bytes = Buffer.from(text);
  async function* chunks() {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  }
  const types: string[] = [];
  try {
    for await (const { type } of readMessages(chunks())) types.push(type);
    return { types, problem: undefined };
  } catch (thrown) {
    return { types, problem: (thrown as Error).message };
  }
}
