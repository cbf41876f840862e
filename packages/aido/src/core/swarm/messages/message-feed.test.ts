import { expect, test } from "vitest";
import { MAX_MESSAGE_BYTES } from "./message.ts";
import { MessageFeed } from "./message-feed.ts";

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

test("S1-25 reads any number of progress updates, then the completion, however the bytes are cut", () => {
  const text = `${PROGRESS}\r\n\n${PROGRESS}${COMPLETION}`;
  for (const size of [1, 7, 100, 100_000]) {
    expect(read(text, size).types).toEqual(["progress-update", "progress-update", "completion"]);
  }
  expect(read(COMPLETION).types).toEqual(["completion"]);
});

test("S1-29 an error is a last message too", () => {
  expect(read(PROGRESS + ERROR)).toEqual({ types: ["progress-update", "error"], problem: undefined });
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
])("S1-30 refuses %s", (_, text, problem) => {
  for (const size of [13, 100_000]) expect(read(text, size).problem).toContain(problem);
});

test("a line without end is refused after 64 KB", () => {
  const feed = new MessageFeed(0, false);
  let given = 0;
  const endless = () => {
    for (;;) {
      given += 1;
      for (const _ of feed.push(Buffer.alloc(1024, "x"))) throw new Error("no line has ended");
    }
  };
  expect(endless).toThrow("has more than 65536 bytes");
  expect(given).toBe(65);
});

test("whoever begins behind a message reads the next ones, and knows whether there may be any", () => {
  const bytes = Buffer.from(PROGRESS + PROGRESS + COMPLETION);
  const [first] = [...new MessageFeed(0, false).push(bytes)];
  expect(first?.offset).toBe(Buffer.byteLength(PROGRESS));
  const rest = [...new MessageFeed(first?.offset ?? 0, false).push(bytes.subarray(first?.offset))];
  expect(rest.map(({ message, offset }) => [message.type, offset])).toEqual([
    ["progress-update", 2 * Buffer.byteLength(PROGRESS)],
    ["completion", bytes.length],
  ]);
  expect(() => [...new MessageFeed(bytes.length, true).push(Buffer.from(PROGRESS))]).toThrow(
    "comes behind the last message",
  );
});

function read(text: string, size = 64): { types: string[]; problem: string | undefined } {
  const bytes = Buffer.from(text);
  const feed = new MessageFeed(0, false);
  const types: string[] = [];
  try {
    for (let at = 0; at < bytes.length; at += size)
      for (const { message } of feed.push(bytes.subarray(at, at + size))) types.push(message.type);
    feed.end();
    return { types, problem: undefined };
  } catch (thrown) {
    return { types, problem: (thrown as Error).message };
  }
}
