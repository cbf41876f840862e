export type Json = Record<string, unknown>;

export function storyJson(id: string, changes: Json = {}): Json {
  return {
    id,
    title: `Story ${id}`,
    description: "As a user I want to sign in.",
    acceptanceCriteria: ["Shows a form", "Typecheck passes"],
    priority: Number(id.slice(3, 6)),
    status: "pending",
    dependsOn: [],
    ...changes,
  };
}

/** A task file that breaks no rule, with changes that may. */
export function taskFileText(
  stories: readonly unknown[] = [storyJson("US-001")],
  changes: Json = {},
): string {
  const { metadata, ...root } = changes;
  const file = {
    schemaVersion: "3.0",
    metadata: {
      title: "Sign in",
      type: "feat",
      branchName: "feat/sign-in",
      createdAt: "2026-01-05",
      ...(metadata as Json | undefined),
    },
    userStories: stories,
    ...root,
  };
  return `${JSON.stringify(file, null, 2)}\n`;
}
