import { AidoError } from "@aido/sdk/protocol";
import type { Story, StoryStatus } from "./task-file.ts";

/** What may follow what. Completed and skipped are ends; failed is one unless it is tried again. */
export const TRANSITIONS: Readonly<Record<StoryStatus, readonly StoryStatus[]>> = {
  pending: ["in_progress", "skipped"],
  in_progress: ["completed", "failed"],
  failed: ["in_progress"],
  completed: [],
  skipped: [],
};

export function checkTransition({ id, status }: Pick<Story, "id" | "status">, to: StoryStatus): void {
  const allowed = TRANSITIONS[status];
  if (allowed.includes(to)) return;
  throw new AidoError("STORY_STATUS_CONFLICT", `${id} is ${status} and cannot become ${to}`, {
    hint:
      allowed.length === 0
        ? `A story that is ${status} stays so; write a new story.`
        : `It can become ${allowed.join(" or ")}.`,
    details: { story: id, from: status, to },
  });
}
