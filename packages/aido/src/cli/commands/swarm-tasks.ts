import { type AidoError, isAidoError } from "@aido/sdk/protocol";
import { readyStories } from "../../core/swarm/tasks/plan-stories.ts";
import type { Story, TaskFile } from "../../core/swarm/tasks/task-file.ts";
import { describeProblems, type TaskFileProblem } from "../../core/swarm/tasks/task-file-error.ts";
import { discoverTaskFiles, readTaskFile } from "../../core/swarm/tasks/task-files.ts";
import type { CliContext } from "../context.ts";
import { note, printResult, warn } from "../output/print.ts";
import { printable } from "../output/printable.ts";
import { table } from "../output/table.ts";

type Read = { path: string; file: TaskFile } | { path: string; error: AidoError };

/** Ends with 1 when a file is not as it must be; the others are listed all the same. */
export async function swarmTasks(context: CliContext, named: readonly string[]): Promise<number> {
  const leftOut: string[] = [];
  const paths = named.length > 0 ? named : await discoverTaskFiles(context.cwd, (path) => leftOut.push(path));
  for (const path of leftOut) await warn(context, leftOutText(path));
  const read: Read[] = [];
  for (const path of paths) read.push(await readOne(context.cwd, path));
  await printResult(context, read.map(asJson), () =>
    read.flatMap((one) => ("file" in one ? [asText(one.file, context.stdout.columns)] : [])).join("\n"),
  );
  if (paths.length === 0) await note(context, "No task files in .aimi/tasks");
  const broken = read.flatMap((one) => ("error" in one ? [one] : []));
  if (!context.globals.json) for (const one of broken) await context.stderr.write(complaint(one));
  return broken.length > 0 ? 1 : 0;
}

export function leftOutText(path: string): string {
  return `${printable(path)} is a link or no plain file; it is left out. Put the file itself there`;
}

async function readOne(cwd: string, path: string): Promise<Read> {
  try {
    return { path, file: await readTaskFile(cwd, path) };
  } catch (thrown) {
    if (!isAidoError(thrown)) throw thrown;
    return { path, error: thrown };
  }
}

function asJson(read: Read): object {
  if ("error" in read) return { file: read.path, valid: false, ...read.error.toBody() };
  const { metadata, stories } = read.file;
  const ready = new Set(readyStories(read.file).map(({ id }) => id));
  return {
    file: read.path,
    valid: true,
    metadata,
    stories: stories.map((story) => ({ ...story, ready: ready.has(story.id) })),
  };
}

function asText(file: TaskFile, width: number | undefined): string {
  const ready = new Set(readyStories(file).map(({ id }) => id));
  const stories = [...file.stories].sort((a, b) => a.priority - b.priority);
  const { title, branchName } = file.metadata;
  const rows = table<Story>(
    stories,
    [
      { title: "STORY", value: ({ id }) => id },
      { title: "STATUS", value: ({ id, status }) => (ready.has(id) ? "ready" : status) },
      { title: "TITLE", value: ({ title }) => title, flexible: true },
      { title: "NEEDS", value: ({ dependsOn }) => dependsOn.join(" ") || "-", flexible: true },
    ],
    width,
  );
  return `${printable(file.path)}: ${printable(title)} (${branchName})\n${rows}`;
}

function complaint({ path, error }: { path: string; error: AidoError }): string {
  const problems = error.details["problems"] as readonly TaskFileProblem[] | undefined;
  const lines =
    problems === undefined
      ? [`Error: ${error.message}`, `Fix: ${error.hint ?? "See `aido swarm-tasks --help`."}`]
      : describeProblems(path, problems);
  return `${lines.map(printable).join("\n")}\n`;
}
