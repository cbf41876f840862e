import { AidoError } from "@aido/sdk/protocol";
import { transitiveDependents } from "./story-graph.ts";
import { checkTransition } from "./story-status.ts";
import type { Story, StoryChange, StoryStatus, TaskFile } from "./task-file.ts";

type Planned = Pick<TaskFile, "stories">;

/** Stories whose dependencies are all completed or skipped, first the one with the lowest priority number. */
export function readyStories({ stories }: Planned): readonly Story[] {
  const done = new Set(
    stories.filter(({ status }) => status === "completed" || status === "skipped").map(({ id }) => id),
  );
  return stories
    .filter(({ status, dependsOn }) => status === "pending" && dependsOn.every((id) => done.has(id)))
    .sort((a, b) => a.priority - b.priority);
}

/** One step of a story, and what follows from it: a failure skips all that needs it. */
export function moveStory(
  file: Planned,
  id: string,
  to: StoryStatus,
  notes?: string,
): readonly StoryChange[] {
  const story = file.stories.find((story) => story.id === id);
  if (story === undefined) {
    throw new AidoError("STORY_STATUS_CONFLICT", `The task file has no story ${id}`, {
      hint: `It has ${file.stories.map((story) => story.id).join(", ")}.`,
      details: { story: id, to },
    });
  }
  checkTransition(story, to);
  const change: StoryChange = { id, status: to, ...(notes === undefined ? {} : { notes }) };
  return to === "failed" ? [change, ...cascadeSkip(file, id)] : [change];
}

/** What depends on a failed story cannot be done: all of it that is not completed is skipped, in any state. */
export function cascadeSkip(file: Planned, failedId: string): readonly StoryChange[] {
  const dependents = transitiveDependents(file.stories, failedId);
  return file.stories
    .filter(({ id, status }) => dependents.has(id) && status !== "completed" && status !== "skipped")
    .map(({ id }) => ({ id, status: "skipped", notes: `Skipped: depends on failed story ${failedId}` }));
}

export const ORPHANED_NOTE = "Failed: the session that worked on it ended; try it again";

/**
 * For a new session, before it begins anything: nobody works on what is in progress any more. What depends on it
 * stays pending, because it can be tried again; skipping is for good.
 */
export function recoverOrphans({ stories }: Planned): readonly StoryChange[] {
  return stories
    .filter(({ status }) => status === "in_progress")
    .map(({ id }) => ({ id, status: "failed", notes: ORPHANED_NOTE }));
}
