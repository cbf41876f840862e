import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { storyJson, taskFileText } from "../testing/task-file-text.ts";
import { moveStory } from "./plan-stories.ts";
import { discoverTaskFiles, MAX_TASK_FILE_BYTES, readTaskFile, writeStories } from "./task-files.ts";

let project = "";
const NAME = ".aimi/tasks/2026-01-05-login-tasks.json";

beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), "aido-tasks-"));
  mkdirSync(join(project, ".aimi/tasks"), { recursive: true });
});
afterEach(() => rmSync(project, { recursive: true, force: true }));

const put = (name: string, text: string | Uint8Array = taskFileText()) =>
  writeFileSync(join(project, name), text);

test("S1-2 finds the project's task files by name and follows no link", async () => {
  put(".aimi/tasks/b-tasks.json");
  put(NAME);
  for (const other of ["notes.json", "-tasks.json", "x-tasks.json.bak", "tasks.json"])
    put(`.aimi/tasks/${other}`);
  mkdirSync(join(project, ".aimi/tasks/dir-tasks.json"));
  symlinkSync("/etc/passwd", join(project, ".aimi/tasks/link-tasks.json"));
  const leftOut: string[] = [];
  expect(await discoverTaskFiles(project, (path) => leftOut.push(path))).toEqual([
    NAME,
    ".aimi/tasks/b-tasks.json",
  ]);
  expect(leftOut.sort()).toEqual([".aimi/tasks/dir-tasks.json", ".aimi/tasks/link-tasks.json"]);
});

test("S1-2 a project without task files has none; directories that are links are refused", async () => {
  expect(await discoverTaskFiles(join(project, "nowhere"))).toEqual([]);
  expect(await discoverTaskFiles(project)).toEqual([]);
  mkdirSync(join(project, "other"));
  symlinkSync(join(project, ".aimi"), join(project, "other/.aimi"));
  await expect(discoverTaskFiles(join(project, "other"))).rejects.toThrow(".aimi is not a directory");
  rmSync(join(project, ".aimi/tasks"), { recursive: true });
  symlinkSync("/tmp", join(project, ".aimi/tasks"));
  await expect(discoverTaskFiles(project)).rejects.toThrow(".aimi/tasks is not a directory");
});

test("S1-2 too many task files are refused", async () => {
  for (let at = 0; at <= 1000; at += 1) put(`.aimi/tasks/${at}-tasks.json`, "");
  await expect(discoverTaskFiles(project)).rejects.toThrow("too many files");
});

test("refuses what is no readable file of a sensible size, and waits for nothing", async () => {
  await expect(readTaskFile(project, NAME)).rejects.toMatchObject({ code: "TASK_FILE_NOT_FOUND" });
  symlinkSync("/etc/passwd", join(project, "link"));
  await expect(readTaskFile(project, "link")).rejects.toThrow("is a link");
  await expect(readTaskFile(project, ".aimi")).rejects.toThrow("is not a file");
  execFileSync("mkfifo", [join(project, "pipe")]);
  await expect(readTaskFile(project, "pipe")).rejects.toThrow("is not a file");
  put("large", " ".repeat(MAX_TASK_FILE_BYTES + 1));
  await expect(readTaskFile(project, "large")).rejects.toThrow("more than");
  put("binary", Uint8Array.of(0x22, 0xff, 0x22));
  await expect(readTaskFile(project, "binary")).rejects.toThrow("UTF-8");
  await expect(readTaskFile(project, "/dev/zero")).rejects.toThrow("is not a file");
});

test("writes a story's new state and leaves every other byte and the file's mode as they are", async () => {
  const text = taskFileText([storyJson("US-001", { big: 1 }), storyJson("US-002")], { later: { x: [1] } })
    .replace('"big": 1', '"big" :  12345678901234567890.10,\t"odd": "\\u00e4"')
    .replaceAll("\n", "\r\n");
  put(NAME, text);
  chmodSync(join(project, NAME), 0o640);
  const file = await readTaskFile(project, NAME);
  const changed = await writeStories(project, file, moveStory(file, "US-002", "in_progress"));
  const at = text.lastIndexOf('"pending"');
  const expected = `${text.slice(0, at)}"in_progress"${text.slice(at + '"pending"'.length)}`;
  expect(readFileSync(join(project, NAME), "utf8")).toBe(expected);
  expect(changed).toEqual(await readTaskFile(project, NAME));
  expect(statSync(join(project, NAME)).mode & 0o777).toBe(0o640);
  expect(readdirSync(join(project, ".aimi/tasks"))).toHaveLength(1);
});

test("writes notes where there were none, where there were some, and in a story on one line", async () => {
  const stories = [
    storyJson("US-001", { status: "in_progress" }),
    storyJson("US-002", { dependsOn: ["US-001"], notes: 'old "note"' }),
  ];
  for (const text of [taskFileText(stories), JSON.stringify(JSON.parse(taskFileText(stories)))]) {
    put(NAME, text);
    const file = await readTaskFile(project, NAME);
    const { stories } = await writeStories(project, file, moveStory(file, "US-001", "failed", 'a "b"\n'));
    expect(stories.map(({ status, notes }) => [status, notes])).toEqual([
      ["failed", 'a "b"\n'],
      ["skipped", "Skipped: depends on failed story US-001"],
    ]);
  }
});

test("refuses to overwrite what another changed, and keeps it", async () => {
  put(NAME);
  const file = await readTaskFile(project, NAME);
  const other = taskFileText([storyJson("US-009")]);
  put(NAME, other);
  const changes = moveStory(file, "US-001", "in_progress");
  await expect(writeStories(project, file, changes)).rejects.toMatchObject({ code: "STORY_STATUS_CONFLICT" });
  expect(readFileSync(join(project, NAME), "utf8")).toBe(other);
});

test("a change that would break a rule is not written", async () => {
  put(NAME);
  const file = await readTaskFile(project, NAME);
  const notes = "x".repeat(10_001);
  await expect(writeStories(project, file, [{ id: "US-001", status: "skipped", notes }])).rejects.toThrow(
    "notes",
  );
  expect(readFileSync(join(project, NAME), "utf8")).toBe(file.text);
});
