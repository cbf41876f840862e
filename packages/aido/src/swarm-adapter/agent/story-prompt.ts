import type { Story, TaskFile } from "../../core/swarm/tasks/task-file.ts";

/** The agent's orders for one story. Nothing of the environment is in them. */
export function storyPrompt(file: TaskFile, story: Story, branch: string): string {
  const done = file.stories.filter(({ status }) => status === "completed");
  const { planPath, brainstormPath } = file.metadata;
  const papers = [planPath, brainstormPath].filter((path) => path !== undefined);
  return [
    `You work in a clone of a git repository, on the branch ${branch}. Do this one story of "${file.metadata.title}":`,
    "",
    `${story.id}: ${story.title}`,
    story.description,
    "",
    "It is done when all of this holds:",
    ...story.acceptanceCriteria.map((criterion) => `- ${criterion}`),
    ...(story.notes === undefined || story.notes === "" ? [] : ["", `Notes: ${story.notes}`]),
    ...(papers.length === 0 ? [] : ["", `Background is in ${papers.join(" and ")}, if it is there.`]),
    ...(done.length === 0
      ? []
      : ["", `Done before: ${done.map(({ id, title }) => `${id} ${title}`).join("; ")}.`]),
    "",
    `Do no other story. Stay on this branch. Your changes are committed and pushed for you, so do not push; leave ${file.path} as it is.`,
    "Nobody can answer questions: decide for yourself, and check your work before you end.",
    "",
  ].join("\n");
}
