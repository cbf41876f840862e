import { type AidoError, isAidoError } from "@aido/sdk/protocol";
import { describe, expect, test } from "vitest";
import { MAX_MESSAGE_BYTES, STANDARD_ERROR_CODES, type SwarmMessage } from "./message.ts";
import { formatMessage, parseMessage } from "./parse-message.ts";

const ENVELOPE = {
  timestamp: "2026-01-05T10:00:00.000Z",
  swarmId: "3f2b8c1e-7d4a-4c6b-9a10-0123456789ab",
  containerId: "0123456789ab",
};
const PAYLOADS = {
  "task-request": {
    taskFilePath: ".aimi/tasks/login-tasks.json",
    branchName: "feat/login",
    repoUrl: "https://github.com/o/r.git",
    envVars: { API_KEY: "s3cret value" },
  },
  "progress-update": { storyId: "US-001", status: "in_progress", output: "at work" },
  completion: { status: "completed", prUrl: null, errors: [] },
  error: { code: "AGENT_CRASH", message: "it ended" },
};
type Type = keyof typeof PAYLOADS;

const message = (type: string, payload: object = {}, envelope: object = {}) =>
  JSON.stringify({ type, ...ENVELOPE, payload: { ...PAYLOADS[type as Type], ...payload }, ...envelope });

test.each(Object.keys(PAYLOADS) as Type[])("S1-30 reads a %s, and writes it as it was", (type) => {
  const expected = { type, ...ENVELOPE, payload: PAYLOADS[type] };
  expect(parseMessage(message(type))).toEqual(expected);
  expect(parseMessage(Buffer.from(message(type, { more: 1 }, { other: 2 })))).toEqual(expected);
  expect(formatMessage(expected as SwarmMessage)).toBe(`${JSON.stringify(expected)}\n`);
});

test("progress may say what was used and which files have changed", () => {
  const more = { usage: { turns: 2, inputTokens: 900, outputTokens: 40 }, changedFiles: ["src/a b.ts"] };
  const payload = { ...PAYLOADS["progress-update"], ...more };
  expect(parseMessage(message("progress-update", more))).toMatchObject({ payload });
  const wrong = message("progress-update", { usage: { ...more.usage, inputTokens: -1 } });
  expect(failure(wrong).details["field"]).toBe("payload.usage.inputTokens");
});

describe("S1-30 the envelope", () => {
  test.each<[string, object]>([
    ["type", { type: "hello" }],
    ["type", { type: "constructor" }],
    ["type", { type: undefined }],
    ["timestamp", { timestamp: "yesterday" }],
    ["timestamp", { timestamp: "2026-01-05" }],
    ["timestamp", { timestamp: "2026-13-05T10:00:00Z" }],
    ["timestamp", { timestamp: 1 }],
    ["swarmId", { swarmId: "3f2b8c1e-7d4a-1c6b-9a10-0123456789ab" }],
    ["swarmId", { swarmId: undefined }],
    ["containerId", { containerId: "short" }],
    ["containerId", { containerId: "0".repeat(65) }],
    ["containerId", { containerId: null }],
    ["payload", { payload: undefined }],
    ["payload", { payload: [] }],
  ])("needs a right %s (%#)", (field, envelope) => {
    expect(failure(message("error", {}, envelope)).details).toEqual({ field, answer: "INVALID_INPUT" });
  });

  test("may have what the adapter puts where it knows nothing, and times with an offset", () => {
    const swarmId = "00000000-0000-0000-0000-000000000000";
    const envelope = { swarmId, containerId: "unknown", timestamp: "2026-01-05T10:00:00+02:00" };
    expect(parseMessage(message("error", {}, envelope))).toMatchObject(envelope);
  });

  test.each(["", "x", "[]", "null", '"text"', "{"])("is a JSON object, not %j", (line) => {
    expect(failure(line).details).toEqual({ field: "(line)", answer: "INVALID_INPUT" });
  });

  test("is UTF-8 of at most 64 KB", () => {
    expect(failure(Uint8Array.of(0x22, 0xff, 0x22)).message).toContain("UTF-8");
    const padding = MAX_MESSAGE_BYTES - message("error").length;
    expect(parseMessage(message("error") + " ".repeat(padding)).type).toBe("error");
    expect(failure(message("error") + " ".repeat(padding + 1)).message).toContain("65536 bytes");
  });
});

describe("S1-30 payloads", () => {
  test.each<[Type, string, unknown]>([
    ["progress-update", "usage", [1]],
    ["progress-update", "changedFiles", "a.ts"],
    ["progress-update", "changedFiles", Array.from({ length: 201 }, () => "a.ts")],
    ["progress-update", "changedFiles", ["x".repeat(1001)]],
    ["task-request", "taskFilePath", ".aimi/tasks/x.yaml"],
    ["task-request", "taskFilePath", "/etc/x.json"],
    ["task-request", "taskFilePath", ".aimi/tasks/../../x.json"],
    ["task-request", "taskFilePath", ".aimi/tasks/$HOME.json"],
    ["task-request", "taskFilePath", ".aimi/tasks/~x.json"],
    ["task-request", "taskFilePath", ".aimi/tasks/x\n.json"],
    ["task-request", "taskFilePath", undefined],
    ["task-request", "branchName", "-b"],
    ["task-request", "branchName", "a b"],
    ["task-request", "branchName", ""],
    ["task-request", "repoUrl", "http://github.com/o/r"],
    ["task-request", "repoUrl", "file:///etc"],
    ["task-request", "repoUrl", "ext::sh -c id"],
    ["task-request", "repoUrl", "ssh://-oProxyCommand=id/x"],
    ["task-request", "repoUrl", "git@-oProxyCommand=id:x"],
    ["task-request", "repoUrl", "git@host:-x"],
    ["task-request", "repoUrl", "--upload-pack=id"],
    ["task-request", "repoUrl", "https://x.example/a b"],
    ["task-request", "envVars", []],
    ["task-request", "envVars", { lower: "x" }],
    ["progress-update", "storyId", "US-1"],
    ["progress-update", "storyId", 1],
    ["progress-update", "status", "done"],
    ["progress-update", "output", "x".repeat(2001)],
    ["progress-update", "output", undefined],
    ["completion", "status", "pending"],
    ["completion", "prUrl", undefined],
    ["completion", "prUrl", "javascript:alert(1)"],
    ["completion", "prUrl", "https://x.example/\u001b[31m"],
    ["completion", "errors", undefined],
    ["completion", "errors", Array.from({ length: 51 }, () => "x")],
    ["error", "code", "lower"],
    ["error", "code", "1X"],
    ["error", "message", "x".repeat(2001)],
    ["error", "message", null],
  ])("of a %s need a right %s (%#)", (type, field, value) => {
    expect(failure(message(type, { [field]: value })).details).toEqual({
      field: `payload.${field}`,
      answer: "TASK_FILE_INVALID",
    });
  });

  test.each(["a\nb", "a\rb", "a\0b", "a;b", "a`b", "a&&b", "a||b", "$(a)"])(
    "refuse the variable %j and do not tell its value",
    (value) => {
      const error = failure(message("task-request", { envVars: { KEY: value } }));
      expect(error.details["field"]).toBe("payload.envVars.KEY");
      expect(JSON.stringify(error.toBody())).not.toContain(JSON.stringify(value).slice(1, -1));
    },
  );

  test("refuse a variable that is no text", () => {
    expect(failure(message("task-request", { envVars: { KEY: 5 } })).details["field"]).toBe(
      "payload.envVars.KEY",
    );
  });

  test("refuse a list with an entry that is too long or no text", () => {
    expect(failure(message("completion", { errors: ["", "x".repeat(501)] })).details["field"]).toBe(
      "payload.errors[1]",
    );
    expect(failure(message("completion", { errors: [1] })).details["field"]).toBe("payload.errors[0]");
  });

  test.each<[Type, object]>([
    ["task-request", { envVars: undefined }],
    ["task-request", { repoUrl: "git@github.com:o/r.git" }],
    ["task-request", { repoUrl: "ssh://git@host.example:22/o/r" }],
    ["progress-update", { storyId: "US-000", output: "" }],
    ["progress-update", { storyId: "US-001a", output: "😀".repeat(2000) }],
    ["completion", { status: "stopped", prUrl: "https://github.com/o/r/pull/1", errors: ["x".repeat(500)] }],
    ...STANDARD_ERROR_CODES.map((code): [Type, object] => ["error", { code }]),
  ])("of a %s may be %j", (type, payload) => {
    expect(parseMessage(message(type, payload)).type).toBe(type);
  });

  test("without variables have an empty set of them", () => {
    expect(parseMessage(message("task-request", { envVars: undefined })).payload).toMatchObject({
      envVars: {},
    });
  });
});

function failure(line: string | Uint8Array): AidoError {
  try {
    parseMessage(line);
  } catch (thrown) {
    if (isAidoError(thrown, "SWARM_MESSAGE_INVALID")) return thrown;
    throw thrown;
  }
  throw new Error("it was accepted");
}
