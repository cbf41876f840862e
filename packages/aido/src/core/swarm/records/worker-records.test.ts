import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { PLAN } from "../testing/swarm-bed.ts";
import { SwarmDirectory } from "./swarm-directory.ts";
import { newRecord } from "./worker-record.ts";
import { WorkerRecords } from "./worker-records.ts";

const SWARM = "3f2a91c0-5b7d-4e21-9c3a-0d1e2f3a4b5c";
let project: string;
let directory: SwarmDirectory;
let records: WorkerRecords;
beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), "aido-records-"));
  directory = new SwarmDirectory(project);
  records = new WorkerRecords(directory);
});
afterEach(() => rmSync(project, { recursive: true, force: true }));

const path = (name: string) => join(project, ".aimi/swarm", name);
const record = newRecord(SWARM, "aimi-swarm-a", { ...PLAN, envNames: ["TOKEN"] });

test("a record comes back as it was written, for its swarm alone, and git does not see it", async () => {
  expect(await records.read(SWARM, "aimi-swarm-a")).toBeUndefined();
  await records.write(record);
  expect(await records.read(SWARM, "aimi-swarm-a")).toEqual(record);
  expect(await records.read(SWARM.replace("3", "4"), "aimi-swarm-a")).toBeUndefined();
  expect(readFileSync(path(".gitignore"), "utf8")).toBe("*\n");
  await records.remove("aimi-swarm-a");
  await records.remove("aimi-swarm-a");
  expect(await records.read(SWARM, "aimi-swarm-a")).toBeUndefined();
});

test.each([
  ["cut in half", (text: string) => text.slice(0, text.length / 2)],
  ["of another form", () => "[]"],
  ["with an isolation that there is not", (text: string) => text.replace("sysbox", "none")],
  ["with an offset below zero", (text: string) => text.replace('"stdoutOffset": 0', '"stdoutOffset": -1')],
  [
    "with a story in no known status",
    (text: string) => text.replace('"stories": {}', '"stories": {"US-001":"x"}'),
  ],
])("a record %s is as none", async (_, spoil) => {
  await records.write(record);
  writeFileSync(path("aimi-swarm-a.json"), spoil(readFileSync(path("aimi-swarm-a.json"), "utf8")));
  expect(await records.read(SWARM, "aimi-swarm-a")).toBeUndefined();
});

test("links are not followed, to a record or to the directory", async () => {
  await records.write(record);
  const outside = join(project, "outside.json");
  writeFileSync(outside, JSON.stringify(record));
  rmSync(path("aimi-swarm-a.json"));
  symlinkSync(outside, path("aimi-swarm-a.json"));
  expect(await records.read(SWARM, "aimi-swarm-a")).toBeUndefined();
  await records.write({ ...record, stdoutOffset: 7 });
  expect(JSON.parse(readFileSync(outside, "utf8")).stdoutOffset).toBe(0);
  rmSync(join(project, ".aimi/swarm"), { recursive: true });
  mkdirSync(join(project, "elsewhere"));
  symlinkSync(join(project, "elsewhere"), join(project, ".aimi/swarm"));
  await expect(records.write(record)).rejects.toMatchObject({ code: "INVALID_PATH" });
  expect(readdirSync(join(project, "elsewhere"))).toEqual([]);
});

test("what a killed writer left is swept away, and nothing else", async () => {
  await records.write(record);
  writeFileSync(path("aimi-swarm-a.json.0123456789ab.tmp"), "half");
  await directory.sweep();
  expect(readdirSync(join(project, ".aimi/swarm")).sort()).toEqual([".gitignore", "aimi-swarm-a.json"]);
});
