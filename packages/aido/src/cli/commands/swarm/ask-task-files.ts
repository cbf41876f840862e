import { AidoError } from "@aido/sdk/protocol";
import type { TaskFile } from "../../../core/swarm/tasks/task-file.ts";
import type { CliContext } from "../../context.ts";
import { printable } from "../../output/printable.ts";

/** Undefined where nobody can be asked. */
export function taskFileQuestion(
  context: CliContext,
): ((files: readonly TaskFile[]) => Promise<readonly TaskFile[]>) | undefined {
  if (!canAsk(context)) return undefined;
  return async (files) => {
    const lines = files.map(({ path, metadata, stories }, index) => {
      const open = stories.filter(({ status }) => status !== "completed" && status !== "skipped").length;
      return `${String(index + 1).padStart(3)}  ${printable(metadata.title)}  (${printable(path)}, ${open} of ${stories.length} stories to do)\n`;
    });
    await context.stderr.write(lines.join(""));
    for (;;) {
      const answer = await ask(context, "Which ones? Numbers such as 1,3 or 2-4, or all: ");
      const chosen = pick(answer, files);
      if (chosen !== undefined) return chosen;
      await context.stderr.write(`Write numbers from 1 to ${files.length}, or all.\n`);
    }
  };
}

export function canAsk({ stdin, stderr, globals }: CliContext): boolean {
  return stdin.isTerminal && stderr.isTerminal && !globals.json && !globals.quiet;
}

/** One line of what is typed. */
export async function ask(context: CliContext, question: string): Promise<string> {
  await context.stderr.write(question);
  let typed = "";
  for await (const chunk of context.stdin.chunks()) {
    typed += Buffer.from(chunk).toString("utf8");
    const end = typed.indexOf("\n");
    if (end >= 0) return typed.slice(0, end).trim();
    if (typed.length > 10_000) break;
  }
  throw new AidoError("CANCELLED", "Nothing was chosen");
}

/** Undefined when the answer is none. */
export function pick<Item>(answer: string, items: readonly Item[]): readonly Item[] | undefined {
  if (answer === "all" || answer === "a") return items;
  const chosen = new Set<number>();
  for (const part of answer.split(/[\s,]+/).filter((each) => each !== "")) {
    const [, first, last] = /^(\d{1,4})(?:-(\d{1,4}))?$/.exec(part) ?? [];
    if (first === undefined) return undefined;
    const [from, to] = [Number(first), Number(last ?? first)];
    if (from < 1 || to < from || to > items.length) return undefined;
    for (let index = from; index <= to; index += 1) chosen.add(index - 1);
  }
  return chosen.size === 0 ? undefined : items.filter((_, index) => chosen.has(index));
}
