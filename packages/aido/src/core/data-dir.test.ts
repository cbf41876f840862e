import { expect, test } from "vitest";
import { DataDir } from "./data-dir.ts";

test.each(["../../victim", "a/b", "/etc", "..", ".", "", "a\0b"])(
  "an id of %j leads to no directory",
  (id) => {
    const dataDir = new DataDir("/data");
    expect(() => dataDir.sandbox(id)).toThrow("is no name of a directory");
    expect(() => dataDir.run(id)).toThrow("is no name of a directory");
    expect(() => dataDir.exec("box", id)).toThrow("is no name of a directory");
    expect(() => dataDir.workspace(id)).toThrow("is no name of a directory");
  },
);

test("ids are names of directories", () => {
  expect(new DataDir("/data").exec("sandbox-1", "a.2")).toBe("/data/sandboxes/sandbox-1/execs/a.2");
});
