import { expect, test } from "vitest";
import { toSandboxId } from "./find-sidecar.ts";
import { toEnv, toLabels, toSnapshotDestination } from "./json-fields.ts";

test("S2-14 texts, numbers and booleans of env_json are variables, the rest is left out", () => {
  const json = { A: "x", B: 1, C: false, D: null, E: [1], F: { g: 1 }, G: "" };
  expect(toEnv(json)).toEqual({ A: "x", B: "1", C: "false", G: "" });
  expect(toEnv({})).toEqual({});
  expect(() => toEnv({ "a-b": "x" })).toThrow(/a-b/);
  expect(Object.keys(toEnv(JSON.parse('{"__proto__":"x"}')))).toEqual(["__proto__"]);
});

test("S2-14 texts of metadata_json are labels, except where snapshots go", () => {
  const json = { team: "a", n: 1, snapshot_destination: " s3://b/k " };
  expect(toLabels(json)).toEqual({ team: "a" });
  expect(toSnapshotDestination(json)).toBe("s3://b/k");
  for (const none of [{}, { snapshot_destination: " " }, { snapshot_destination: 5 }]) {
    expect(toSnapshotDestination(none)).toBeUndefined();
  }
  expect(() => toLabels({ "dev.aido.owner": "me" })).toThrow(/reserved/);
});

test.each([
  ["http://127.0.0.1:3000/sidecar/sandbox-1", "sandbox-1"],
  ["https://box.example/a/b/sidecar/sandbox-1/", "sandbox-1"],
  ["http://h/sidecar/sandbox-1?x=/other#/y", "sandbox-1"],
  ["sandbox-1", "sandbox-1"],
  [" web ", "web"],
])("a sidecar's address %s names %s", (url, id) => {
  expect(toSandboxId(url)).toBe(id);
});

test.each(["", "http://", "http://h", "http://h/sidecar/..", "../x y", "http://h/%2e%2e", "ftp://h/a b"])(
  "the address %j names nothing",
  (url) => {
    expect(() => toSandboxId(url)).toThrow(expect.objectContaining({ code: "VALIDATION_ERROR" }));
  },
);
