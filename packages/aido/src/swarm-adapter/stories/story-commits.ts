import { STORY_TRAILER } from "../../core/swarm/tasks/story-trailer.ts";
import type { Story, TaskFile } from "../../core/swarm/tasks/task-file.ts";
import type { WorkerGit } from "../git/worker-git.ts";
import { oneLine } from "../report/fit-text.ts";

type Ending = "completed" | "failed" | "stopped";

/** What a story's commit says; its last line is read again when a worker goes on with the branch. */
export function storyMessage(file: TaskFile, story: Story, ending: Ending): string {
  const mark = ending === "completed" ? "" : ` (${ending})`;
  const subject = `${story.id}${mark}: ${oneLine(story.title)}`;
  return `${subject}\n\nOf ${oneLine(file.metadata.title)}.\n\n${STORY_TRAILER}: ${story.id} ${ending} ${file.path}\n`;
}

interface CommitRange {
  readonly base: string;
  readonly tip: string;
}

async function readTrailers(git: WorkerGit, { base, tip }: CommitRange): Promise<readonly string[]> {
  const format = `--format=%(trailers:key=${STORY_TRAILER},valueonly,unfold)`;
  const { stdout } = await git.run(["log", "--max-count=10000", format, `${base}..${tip}`, "--"]);
  const lines = stdout.toString("utf8").split("\n");
  return lines.map((line) => line.trim()).filter((line) => line !== "");
}

/** The branch has commits, and no worker made any of them. */
export async function isSomebodyElses(git: WorkerGit, range: CommitRange): Promise<boolean> {
  return range.base !== range.tip && (await readTrailers(git, range)).length === 0;
}

/** Stories that commits of the branch complete: for task files that git ignores, and so are not part of the branch. */
export async function completedOnBranch(
  git: WorkerGit,
  { path, ...range }: CommitRange & { path: string },
): Promise<ReadonlySet<string>> {
  const done = (await readTrailers(git, range))
    .map((line) => line.split(" "))
    .filter(([, ending, ...of]) => {
      return ending === "completed" && of.join(" ") === path;
    });
  return new Set(done.map(([id = ""]) => id));
}

/** Whether its states travel with the branch. */
export async function isPartOfBranch(git: WorkerGit, path: string): Promise<boolean> {
  const { stdout } = await git.run(["ls-files", "-z", "--", `:(literal)${path}`]);
  if (stdout.byteLength > 0) return true;
  return (await git.run(["check-ignore", "--quiet", "--", path], { answers: [1] })).code === 1;
}
