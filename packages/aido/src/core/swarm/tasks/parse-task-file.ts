import { BRANCH_NAME_RULE, isBranchName } from "../branch-name.ts";
import { FieldReader } from "./field-reader.ts";
import { type JsonNode, JsonSyntaxError, lineAt, parseJsonSource } from "./json-source.ts";
import { screenText } from "./screen-text.ts";
import { findCycle } from "./story-graph.ts";
import {
  DEFAULT_CONCURRENCY,
  STORY_ID,
  STORY_STATUSES,
  type Story,
  TASK_TYPES,
  type TaskFile,
} from "./task-file.ts";
import { taskFileError } from "./task-file-error.ts";

const LIMITS = { title: 200, description: 500, criterion: 300, path: 1000, notes: 10_000 };
const TYPECHECK = "Typecheck passes";

/** The file by all rules of schema 3.0, or an error that names every problem with its line and field. */
export function parseTaskFile(path: string, text: string): TaskFile {
  const read = new FieldReader(text);
  const root = parseRoot(path, text);
  const version = read.string(root, "", "schemaVersion", { max: 20 });
  if (version !== undefined && version !== "3.0") {
    read.problem(
      read.member(root, "schemaVersion") ?? root,
      "schemaVersion",
      `is ${JSON.stringify(version)}, which is not known`,
      'Set it to "3.0"; other versions are not read.',
    );
  }
  const metadata = parseMetadata(read, root);
  const list = read.list(root, "", "userStories");
  if (list !== undefined && list.length === 0) {
    read.problem(
      read.member(root, "userStories") ?? root,
      "userStories",
      "is empty",
      "Write at least one story.",
    );
  }
  const places = (list ?? []).map((node, index) => ({ node, field: `userStories[${index}]` }));
  const stories = places.map(({ node, field }) => parseStory(read, node, field));
  checkTogether(read, stories, places);
  if (read.problems.length > 0) {
    throw taskFileError(
      path,
      [...read.problems].sort((a, b) => a.line - b.line),
    );
  }
  return { path, text, metadata, stories };
}

function parseRoot(path: string, text: string): JsonNode {
  try {
    return parseJsonSource(text);
  } catch (thrown) {
    if (!(thrown instanceof JsonSyntaxError)) throw thrown;
    const line = lineAt(text, thrown.offset);
    const fix = `Correct the JSON at line ${line}.`;
    throw taskFileError(path, [{ field: "(root)", line, problem: thrown.message, fix }]);
  }
}

function parseMetadata(read: FieldReader, root: JsonNode): TaskFile["metadata"] {
  const node = read.object(root, "", "metadata");
  const text = (name: string, max: number) => read.string(node, "metadata", name, { max });
  const title = text("title", LIMITS.title);
  screen(read, node, "metadata", "title", title);
  const branchName = text("branchName", 200);
  if (branchName !== undefined && !isBranchName(branchName)) {
    read.wrong(node, "metadata", "branchName", "is not a branch name", `Use ${BRANCH_NAME_RULE}.`);
  }
  const createdAt = text("createdAt", 20);
  if (createdAt !== undefined && !isDate(createdAt)) {
    read.wrong(node, "metadata", "createdAt", "is not a date", "Write it as YYYY-MM-DD.");
  }
  const optional = { max: LIMITS.path, optional: true };
  return {
    title: title ?? "",
    type: read.oneOf(node, "metadata", "type", TASK_TYPES),
    branchName: branchName ?? "",
    createdAt: createdAt ?? "",
    planPath: read.string(node, "metadata", "planPath", optional),
    brainstormPath: read.string(node, "metadata", "brainstormPath", optional),
    maxConcurrency: parseConcurrency(read, node),
  };
}

function parseConcurrency(read: FieldReader, metadata: JsonNode | undefined): number {
  const count = read.number(metadata, "metadata", "maxConcurrency", { optional: true }) ?? 0;
  if (!Number.isSafeInteger(count) || count < 0) {
    const fix = `Write a whole number; 0 stands for ${DEFAULT_CONCURRENCY}.`;
    read.wrong(metadata, "metadata", "maxConcurrency", "is not a count", fix);
  }
  return count === 0 ? DEFAULT_CONCURRENCY : count;
}

function parseStory(read: FieldReader, node: JsonNode, field: string): Story {
  const story = read.asObject(node, field);
  const id = read.string(story, field, "id", { max: 20 });
  if (id !== undefined && !STORY_ID.test(id)) {
    read.wrong(story, field, "id", `is ${JSON.stringify(id)}`, "Write it as US-001, US-002, …");
  }
  const title = read.string(story, field, "title", { max: LIMITS.title });
  const description = read.string(story, field, "description", { max: LIMITS.description });
  screen(read, story, field, "title", title);
  screen(read, story, field, "description", description);
  const criteria = read.strings(story, field, "acceptanceCriteria", LIMITS.criterion);
  if (criteria !== undefined && !criteria.some((criterion) => criterion.trim() === TYPECHECK)) {
    const fix = `Add "${TYPECHECK}" to the list.`;
    read.wrong(story, field, "acceptanceCriteria", `does not hold "${TYPECHECK}"`, fix);
  }
  return {
    id: id ?? "",
    title: title ?? "",
    description: description ?? "",
    acceptanceCriteria: criteria ?? [],
    priority: read.number(story, field, "priority") ?? Number.NaN,
    status: read.oneOf(story, field, "status", STORY_STATUSES),
    dependsOn: read.strings(story, field, "dependsOn", 20) ?? [],
    notes: read.string(story, field, "notes", { max: LIMITS.notes, optional: true, empty: true }),
  };
}

/** What can only be said of all stories together. */
function checkTogether(
  read: FieldReader,
  stories: readonly Story[],
  places: readonly { node: JsonNode; field: string }[],
): void {
  const ids = new Map<string, string>();
  const priorities = new Map<number, string>();
  const known = new Set(stories.map(({ id }) => id));
  stories.forEach(({ id, priority, dependsOn }, index) => {
    const { node, field } = places[index] as { node: JsonNode; field: string };
    const first = ids.get(id);
    if (first === undefined) ids.set(id, field);
    else if (id !== "")
      read.wrong(node, field, "id", `is ${id}, as in ${first}`, "Give each story its own id.");
    const same = priorities.get(priority);
    if (same === undefined) priorities.set(priority, id);
    else if (!Number.isNaN(priority)) {
      const fix = "Give each story its own priority; lower numbers come first.";
      read.wrong(node, field, "priority", `is ${priority}, as that of ${same}`, fix);
    }
    for (const other of dependsOn) {
      if (other === id) {
        read.wrong(node, field, "dependsOn", `names ${id} itself`, `Take ${id} out of its own list.`);
      } else if (!known.has(other)) {
        const named = `names ${JSON.stringify(other)}, which does not exist`;
        read.wrong(node, field, "dependsOn", named, "Name stories of this file, or take it out.");
      }
    }
  });
  const cycle = findCycle(
    stories.map((story) => ({ ...story, dependsOn: story.dependsOn.filter((id) => id !== story.id) })),
  );
  const place = places[stories.findIndex(({ id }) => id === cycle?.[0])];
  if (cycle === undefined || place === undefined) return;
  const fix = "Take one of these dependencies out.";
  read.wrong(place.node, place.field, "dependsOn", `forms a cycle: ${cycle.join(" → ")}`, fix);
}

function screen(
  read: FieldReader,
  node: JsonNode | undefined,
  field: string,
  name: string,
  text?: string,
): void {
  const found = text === undefined ? undefined : screenText(text);
  if (found === undefined) return;
  const fix = "Say what is to be built in plain words; agents get this text as part of their orders.";
  read.wrong(node, field, name, `holds ${found}`, fix);
}

function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}
