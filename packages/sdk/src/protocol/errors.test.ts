import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { AidoError, ERROR_CODES, ERROR_KINDS, isAidoError, toAidoError } from "./errors.ts";

const PAGE = readFileSync(new URL("../../../../docs/reference/errors.md", import.meta.url), "utf8");

describe("docs/reference/errors.md", () => {
  test("has one heading per code, in the order of the table", () => {
    const headings = [...PAGE.matchAll(/^### (\w+)$/gm)].map((match) => match[1]);
    expect(headings).toEqual(Object.keys(ERROR_CODES));
  });

  test("names each code's kind and says something about it", () => {
    for (const [code, kind] of Object.entries(ERROR_CODES)) {
      expect(PAGE).toMatch(new RegExp(`^### ${code}\\n\\nKind \`${kind}\`\\. .{20,}$`, "m"));
    }
  });

  test("shows what each kind means for status, exit code and retry", () => {
    for (const [kind, { status, exit, retry }] of Object.entries(ERROR_KINDS)) {
      const row = new RegExp(
        `^\\| \`${kind}\` +\\| ${status} +\\| ${exit} +\\| ${retry ? "yes" : "no"} +\\|$`,
        "m",
      );
      expect(PAGE).toMatch(row);
    }
  });
});

describe("an AidoError", () => {
  test("becomes a body with its hint, its details and the message of its cause", () => {
    const error = new AidoError("CONTAINER_NOT_FOUND", "Sandbox x does not exist", {
      hint: "Look at the list.",
      details: { id: "x" },
      cause: new Error("ENOENT"),
    });
    expect(error).toMatchObject({ kind: "not_found", status: 404, exitCode: 4 });
    expect(error.toBody("r1")).toEqual({
      error: {
        code: "CONTAINER_NOT_FOUND",
        message: "Sandbox x does not exist",
        hint: "Look at the list.",
        details: { cause: "ENOENT", id: "x" },
        requestId: "r1",
      },
    });
    expect(new AidoError("CANCELLED", "Stopped").toBody()).toEqual({
      error: { code: "CANCELLED", message: "Stopped" },
    });
  });

  test("is known by its brand, not by its class", () => {
    const error = new AidoError("UNSUPPORTED", "no");
    expect(isAidoError(error)).toBe(true);
    expect(isAidoError(error, "UNSUPPORTED")).toBe(true);
    expect(isAidoError(error, "CANCELLED")).toBe(false);
    for (const other of [new Error("no"), { code: "UNSUPPORTED" }, null, undefined, "UNSUPPORTED"]) {
      expect(isAidoError(other)).toBe(false);
    }
  });

  test("is what anything thrown becomes: an abort is a cancellation, the rest a bug", () => {
    const abort = new DOMException("aborted", "AbortError");
    expect(toAidoError(abort)).toMatchObject({ code: "CANCELLED", cause: abort });
    expect(toAidoError(new TypeError("x is undefined"))).toMatchObject({
      code: "INTERNAL_SERVER_ERROR",
      message: "x is undefined",
    });
    expect(toAidoError("text")).toMatchObject({ code: "INTERNAL_SERVER_ERROR", message: "text" });
    const error = new AidoError("UNSUPPORTED", "no");
    expect(toAidoError(error)).toBe(error);
  });
});
