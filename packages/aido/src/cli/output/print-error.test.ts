import { AidoError, ERROR_CODES, ERROR_KINDS, type ErrorCode } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { MemorySink } from "./memory-sink.ts";
import { printError } from "./print-error.ts";

function output(options: { json?: boolean; verbose?: boolean } = {}) {
  return { stdout: new MemorySink(), stderr: new MemorySink(), json: false, verbose: false, ...options };
}

test("an error is a sentence and a hint on stderr, nothing on stdout", async () => {
  const out = output();
  const error = new AidoError("CONTAINER_NOT_FOUND", "No sandbox is called abc", { hint: "Type `aido ls`." });
  expect(await printError(error, out)).toBe(4);
  expect(out.stderr.text).toBe("aido: No sandbox is called abc\nhint: Type `aido ls`.\n");
  expect(out.stdout.text).toBe("");
});

test("with --json the error body is the one value on stdout", async () => {
  const out = output({ json: true });
  await printError(new AidoError("CONTAINER_NOT_FOUND", "gone", { details: { id: "abc" } }), out);
  expect(JSON.parse(out.stdout.text)).toEqual({
    error: { code: "CONTAINER_NOT_FOUND", message: "gone", details: { id: "abc" } },
  });
  expect(out.stderr.text).toBe("");
});

test.each(Object.keys(ERROR_CODES) as ErrorCode[])("%s ends with the exit code of its kind", async (code) => {
  expect(await printError(new AidoError(code, "x"), output())).toBe(ERROR_KINDS[ERROR_CODES[code]].exit);
});

test("escapes inside a message do not reach the terminal", async () => {
  const out = output({ verbose: true });
  await printError(
    new AidoError("EXEC_FAILED", "bad \u001b]0;title\u0007 name", { cause: "\u001b[2J" }),
    out,
  );
  expect(out.stderr.text).not.toContain("\u001b");
  expect(out.stderr.text).not.toContain("\u0007");
});

test("what is not an AidoError is called a bug, with its cause only under --verbose", async () => {
  const quiet = output();
  expect(await printError(new TypeError("x is undefined"), quiet)).toBe(1);
  expect(quiet.stderr.text).toContain("--verbose");
  const verbose = output({ verbose: true });
  await printError(new TypeError("x is undefined"), verbose);
  expect(verbose.stderr.text).toContain("print-error.test.ts");
});

test("a path of this machine that cannot be used is told as that, anything else unforeseen as a bug", async () => {
  const told = async (thrown: unknown) => {
    const out = output();
    await printError(thrown, out);
    return out.stderr.text;
  };
  const refused = Object.assign(new Error("EACCES: permission denied, mkdir '/root/x'"), { code: "EACCES" });
  expect(await told(Object.assign(refused, { path: "/root/x" }))).toContain("hint: Check this path");
  expect(await told(new TypeError("x is undefined"))).toContain("hint: This looks like a bug in aido");
});
