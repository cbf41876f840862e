import { describe, expect, test } from "vitest";
import { type LoggerOptions, StreamLogger } from "./stream-logger.ts";

describe("the logger", () => {
  test("writes one JSON object per line, from its level up", () => {
    const { lines, logger } = capture({ level: "info", format: "json" });
    logger.debug({}, "hidden");
    logger.child({ sandboxId: "a" }).info({ durationMs: 3, at: new Date(0) }, "Created");
    logger.error({ cause: new Error("boom\n") }, "Failed");
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      {
        time: "2026-01-01T00:00:00.000Z",
        level: "info",
        message: "Created",
        sandboxId: "a",
        durationMs: 3,
        at: "1970-01-01T00:00:00.000Z",
      },
      {
        time: "2026-01-01T00:00:00.000Z",
        level: "error",
        message: "Failed",
        cause: { name: "Error", message: "boom\n" },
      },
    ]);
    expect(lines.every((line) => line.indexOf("\n") === line.length - 1)).toBe(true);
  });

  test("hides secrets and environments at any depth", () => {
    const { lines, logger } = capture({ level: "debug", format: "json" });
    const fields = {
      token: "s3cret",
      request: { headers: { Authorization: "s3cret", "x-api-key": "s3cret" }, env: { A: "s3cret" } },
      list: [{ password: "s3cret", supervisorToken: "s3cret" }],
      data: Buffer.from("s3cret"),
    };
    logger.info(fields, "x");
    expect(lines.join("")).not.toContain("s3cret");
    expect(lines.join("")).toContain("6 bytes");
  });

  test("writes text for people, in which nothing drives the terminal", () => {
    const { lines, logger } = capture({ level: "debug", format: "text" });
    logger.warn({ image: "a\u001b[31m", n: 1, gone: undefined, plain: "x/y:1" }, "Odd \u001b[2J\nname");
    expect(lines).toEqual(['00:00:00.000 warn  Odd  [2J name image="a\\u001b[31m" n=1 plain=x/y:1\n']);
  });

  test("survives what cannot be written as JSON", () => {
    const { lines, logger } = capture({ level: "debug", format: "json" });
    const loop: Record<string, unknown> = { n: 1n };
    loop["self"] = loop;
    logger.info(loop, "x");
    expect(lines).toHaveLength(1);
    const { lines: none, logger: silent } = capture({ level: "silent", format: "json" });
    silent.error({}, "x");
    expect(none).toEqual([]);
  });
});

function capture(options: Pick<LoggerOptions, "level" | "format">) {
  const lines: string[] = [];
  const logger = new StreamLogger({
    ...options,
    write: (line) => void lines.push(line),
    now: () => new Date(Date.UTC(2026, 0, 1)),
  });
  return { lines, logger };
}
