import { type JsonNode, parseJsonSource } from "./json-source.ts";
import type { StoryChange } from "./task-file.ts";

interface Edit {
  start: number;
  end: number;
  text: string;
}

/** The text with these stories changed. Only the values themselves are replaced: all else stays to the byte. */
export function editTaskFile(text: string, changes: readonly StoryChange[]): string {
  const root = parseJsonSource(text);
  const stories = (member(root, "userStories")?.value ?? []) as readonly JsonNode[];
  const edits = changes.flatMap((change) => {
    const story = stories.find((story) => member(story, "id")?.value === change.id);
    const status = story && member(story, "status");
    if (story === undefined || status === undefined) throw new Error(`no story ${change.id} to change`);
    return [replace(status, change.status), ...editNotes(text, story, status, change.notes)];
  });
  return edits
    .sort((a, b) => b.start - a.start || b.end - a.end)
    .reduce((whole, { start, end, text }) => whole.slice(0, start) + text + whole.slice(end), text);
}

function editNotes(text: string, story: JsonNode, status: JsonNode, notes: string | undefined): Edit[] {
  if (notes === undefined) return [];
  const present = member(story, "notes");
  if (present !== undefined) return [replace(present, notes)];
  // New notes stand below the status, indented as it is; in a story on one line they follow it.
  const lineStart = text.lastIndexOf("\n", status.start) + 1;
  const indent = /^[ \t]*(?=")/.exec(text.slice(lineStart, status.start))?.[0];
  const gap = indent === undefined || lineStart <= story.start ? " " : `\n${indent}`;
  return [{ start: status.end, end: status.end, text: `,${gap}"notes": ${JSON.stringify(notes)}` }];
}

function replace({ start, end }: JsonNode, value: string): Edit {
  return { start, end, text: JSON.stringify(value) };
}

function member(node: JsonNode, name: string): JsonNode | undefined {
  return node.value instanceof Map ? (node.value as ReadonlyMap<string, JsonNode>).get(name) : undefined;
}
