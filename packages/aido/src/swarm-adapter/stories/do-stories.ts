import { moveStory, readyStories, recoverOrphans } from "../../core/swarm/tasks/plan-stories.ts";
import type { Story, StoryChange } from "../../core/swarm/tasks/task-file.ts";
import type { StoryOutcome } from "../agent/run-story.ts";
import { firstChars, oneLine } from "../report/fit-text.ts";
import type { Reporter } from "../report/reporter.ts";
import { Stopped } from "../stopped.ts";
import { storyMessage } from "./story-commits.ts";
import type { WorkerTaskFile } from "./worker-task-file.ts";

const MAX_NOTE = 500;

export interface StoryWork {
  readonly tasks: WorkerTaskFile;
  readonly reporter: Reporter;
  /** Completed by commits of the branch, though the file does not say so. */
  readonly completedBefore: ReadonlySet<string>;
  /** Before each; raises Stopped when none may begin any more. */
  readonly admit: () => void;
  /** Raises Stopped when the worker is to end. */
  readonly run: (story: Story) => Promise<StoryOutcome>;
  /** Gives what of the workspace cannot be kept, and why: a story whose work is not whole has failed. */
  readonly stage: () => Promise<string | undefined>;
  /** Keeps what is in the workspace. */
  readonly commit: (message: string) => Promise<void>;
  /** Takes out what must be told nobody: notes are pushed with the branch. */
  readonly clean: (text: string) => string;
  /** Of each story that failed, one line, and of each whose work is not whole. */
  readonly errors: string[];
}

/** One story after the other, those that others need first. What failed in an earlier session is tried once more. */
export async function doStories(work: StoryWork): Promise<void> {
  const { tasks } = work;
  await takeUp(work);
  const again = new Set(tasks.file.stories.filter(({ status }) => status === "failed").map(({ id }) => id));
  for (;;) {
    const stories = tasks.file.stories.map(
      (story): Story => (again.has(story.id) ? { ...story, status: "pending" } : story),
    );
    const [next] = readyStories({ stories });
    if (next === undefined) return;
    work.admit();
    again.delete(next.id);
    await doStory(work, next.id);
  }
}

async function takeUp({ tasks, reporter, completedBefore }: StoryWork): Promise<void> {
  const orphans = recoverOrphans(tasks.file);
  await tasks.change(orphans);
  for (const { id, notes } of orphans) reporter.story(id, "failed", notes ?? "");
  const known = tasks.file.stories.filter(({ id, status }) => {
    return completedBefore.has(id) && (status === "pending" || status === "failed");
  });
  for (const { id } of known) {
    await tasks.change(moveStory(tasks.file, id, "in_progress"));
    await tasks.change(moveStory(tasks.file, id, "completed"));
  }
  for (const { id, status } of tasks.file.stories) {
    if (status === "completed" || status === "skipped")
      reporter.story(id, status, "As an earlier session left it");
  }
}

async function doStory(work: StoryWork, id: string): Promise<void> {
  const { tasks, reporter } = work;
  await tasks.change(moveStory(tasks.file, id, "in_progress"));
  const story = find(tasks, id);
  reporter.story(id, "in_progress", story.title);
  let outcome: StoryOutcome;
  try {
    outcome = await work.run(story);
  } catch (thrown) {
    // Not the story's fault: what needs it stays pending, and all of it can be gone on with.
    const isStopped = thrown instanceof Stopped;
    const why = `${isStopped ? "Stopped" : "Failed"}: ${thrown instanceof Error ? thrown.message : String(thrown)}`;
    const note = firstChars(oneLine(work.clean(`${why}; try it again`)), MAX_NOTE);
    const missing = await work.stage();
    if (missing !== undefined) work.errors.push(`${id}: ${missing}`);
    await settle(
      work,
      story,
      [{ id, status: "failed", notes: note }],
      note,
      isStopped ? "stopped" : "failed",
    );
    throw thrown;
  }
  const missing = await work.stage();
  const isDone = outcome.success && missing === undefined;
  const said = work.clean(isDone ? outcome.text : whyFailed(outcome, missing)).trim();
  if (isDone) {
    await settle(work, story, moveStory(tasks.file, id, "completed"), said, "completed");
    return;
  }
  const note = firstChars(oneLine(`Failed: ${said || "the agent failed"}`), MAX_NOTE);
  work.errors.push(`${id} failed: ${said || "the agent failed"}`);
  await settle(work, story, moveStory(tasks.file, id, "failed", note), said || "The agent failed", "failed");
}

function whyFailed({ success, text }: StoryOutcome, missing: string | undefined): string {
  return [...(success ? [] : [text]), ...(missing === undefined ? [] : [missing])].join("; ");
}

/** Told when it is committed, so that what was told as done is never lost. */
async function settle(
  work: StoryWork,
  story: Story,
  changes: readonly StoryChange[],
  said: string,
  ending: "completed" | "failed" | "stopped",
): Promise<void> {
  const { tasks, reporter } = work;
  await tasks.change(changes);
  await work.commit(storyMessage(tasks.file, story, ending));
  for (const { id, status, notes } of changes)
    reporter.story(id, status, id === story.id ? said : (notes ?? ""));
}

function find({ file }: WorkerTaskFile, id: string): Story {
  const story = file.stories.find((one) => one.id === id);
  if (story === undefined) throw new Error(`no story ${id}`);
  return story;
}
