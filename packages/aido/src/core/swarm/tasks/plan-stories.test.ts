import { expect, test } from "vitest";
import { storyJson, taskFileText } from "../testing/task-file-text.ts";
import { editTaskFile } from "./edit-task-file.ts";
import { parseTaskFile } from "./parse-task-file.ts";
import { cascadeSkip, moveStory, ORPHANED_NOTE, readyStories, recoverOrphans } from "./plan-stories.ts";
import { transitiveDependents } from "./story-graph.ts";
import { checkTransition } from "./story-status.ts";
import { STORY_STATUSES } from "./task-file.ts";

const file = (stories: Parameters<typeof storyJson>[]) =>
  parseTaskFile("x", taskFileText(stories.map((story) => storyJson(...story))));
const ids = (stories: readonly { id: string }[]) => stories.map(({ id }) => id);

test("a story takes only the steps it may", () => {
  const allowed = STORY_STATUSES.flatMap((status) =>
    STORY_STATUSES.filter((to) => {
      try {
        checkTransition({ id: "US-001", status }, to);
        return true;
      } catch (thrown) {
        expect(thrown).toMatchObject({ code: "STORY_STATUS_CONFLICT", details: { from: status, to } });
        return false;
      }
    }).map((to) => `${status} → ${to}`),
  );
  expect(allowed).toEqual([
    "pending → in_progress",
    "pending → skipped",
    "in_progress → completed",
    "in_progress → failed",
    "failed → in_progress",
  ]);
});

test("ready are pending stories whose dependencies are completed or skipped, by priority", () => {
  const some = file([
    ["US-001", { status: "completed" }],
    ["US-002", { status: "skipped" }],
    ["US-003", { priority: 30, dependsOn: ["US-001", "US-002"] }],
    ["US-004", { priority: 20, dependsOn: ["US-001"] }],
    ["US-005", { dependsOn: ["US-003"] }],
    ["US-006", { status: "failed" }],
    ["US-007", { dependsOn: ["US-006"] }],
    ["US-008", { status: "in_progress" }],
    ["US-009", { priority: -1.5 }],
  ]);
  expect(ids(readyStories(some))).toEqual(["US-009", "US-004", "US-003"]);
});

test("a failed story skips all that needs it and is not completed, with a note", () => {
  const some = file([
    ["US-001", { status: "in_progress" }],
    ["US-002", { dependsOn: ["US-001"] }],
    ["US-003", { dependsOn: ["US-002"] }],
    ["US-004", { status: "completed", dependsOn: ["US-001"] }],
    ["US-005", { dependsOn: ["US-004"], status: "in_progress" }],
    ["US-006"],
    ["US-007", { status: "skipped", notes: "not wanted", dependsOn: ["US-001"] }],
  ]);
  const notes = "Skipped: depends on failed story US-001";
  const skipped = ["US-002", "US-003", "US-005"].map((id) => ({ id, status: "skipped", notes }));
  expect(cascadeSkip(some, "US-001")).toEqual(skipped);
  expect(moveStory(some, "US-001", "failed", "no luck")).toEqual([
    { id: "US-001", status: "failed", notes: "no luck" },
    ...skipped,
  ]);
  expect(moveStory(some, "US-001", "completed")).toEqual([{ id: "US-001", status: "completed" }]);
  expect(() => moveStory(some, "US-006", "completed")).toThrow(
    "US-006 is pending and cannot become completed",
  );
  expect(() => moveStory(some, "US-404", "failed")).toThrow("no story US-404");
});

test("what was in progress when a session begins has failed, can be tried again and skips nothing", () => {
  const some = file([
    ["US-001", { status: "in_progress" }],
    ["US-002", { dependsOn: ["US-001"] }],
  ]);
  const changes = recoverOrphans(some);
  expect(changes).toEqual([{ id: "US-001", status: "failed", notes: ORPHANED_NOTE }]);
  const recovered = parseTaskFile("x", editTaskFile(some.text, changes));
  expect(moveStory(recovered, "US-001", "in_progress")).toHaveLength(1);
  expect(recoverOrphans(recovered)).toEqual([]);
});

test("long chains of stories need no deep stack", () => {
  const stories = Array.from({ length: 50_000 }, (_, at) => ({
    id: `s${at}`,
    dependsOn: at === 0 ? [] : [`s${at - 1}`],
  }));
  expect(transitiveDependents(stories, "s0").size).toBe(49_999);
});
