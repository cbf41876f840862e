import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { sandboxRecord } from "../../../test/contract/records.ts";
import { RowMemo } from "./row-memo.ts";
import { SqliteConnection } from "./sqlite-connection.ts";
import { SqliteSandboxes } from "./sqlite-sandboxes.ts";

let directory: string;
let own: SqliteConnection;
let other: SqliteConnection;
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "aido-memo-"));
  own = new SqliteConnection(join(directory, "aido.db"));
  other = new SqliteConnection(join(directory, "aido.db"));
  await new SqliteSandboxes(own).insert(sandboxRecord("aaaa", { image: "first" }));
});
afterEach(() => {
  own.close();
  other.close();
  rmSync(directory, { recursive: true, force: true });
});

const SQL = "SELECT image FROM sandboxes WHERE id = 'aaaa'";

test("a row is read once while nobody writes to its table", () => {
  const memo = new RowMemo<string>(own, "sandboxes");
  let reads = 0;
  const read = () => {
    reads += 1;
    return String(own.first(SQL)?.["image"]);
  };
  expect([memo.get("aaaa", read), memo.get("aaaa", read)]).toEqual(["first", "first"]);
  own.run("INSERT INTO counters (name, value) VALUES ('anything', 1)");
  expect(memo.get("aaaa", read)).toBe("first");
  expect(reads).toBe(1);
});

test("what this connection changes or takes back is seen at once, and another's at the next event", async () => {
  const sandboxes = new SqliteSandboxes(own);
  const theirs = new SqliteSandboxes(other);
  const image = async () => (await sandboxes.get("aaaa"))?.image;
  expect(await image()).toBe("first");
  await sandboxes.update("aaaa", { warmImage: "warm" });
  expect((await sandboxes.get("aaaa"))?.warmImage).toBe("warm");
  await theirs.update("aaaa", { warmImage: "theirs" });
  await setImmediate();
  expect((await sandboxes.find("aaaa", 2))[0]?.warmImage).toBe("theirs");
  expect(() =>
    own.write(() => {
      own.run("UPDATE sandboxes SET image = 'inside' WHERE id = 'aaaa'");
      const memo = new RowMemo<string>(own, "sandboxes");
      expect(memo.get("aaaa", () => String(own.first(SQL)?.["image"]))).toBe("inside");
      void sandboxes.get("aaaa");
      throw new Error("taken back");
    }),
  ).toThrow("taken back");
  expect(await image()).toBe("first");
  await theirs.remove("aaaa");
  await setImmediate();
  expect(await sandboxes.get("aaaa")).toBeUndefined();
});

test("what is handed out is the caller's own", async () => {
  const sandboxes = new SqliteSandboxes(own);
  const first = await sandboxes.get("aaaa");
  if (first !== undefined) first.image = "changed";
  expect(() => Object.assign(first?.labels ?? {}, { more: "1" })).toThrow(TypeError);
  expect(await sandboxes.get("aaaa")).toMatchObject({ image: "first", labels: {} });
});
