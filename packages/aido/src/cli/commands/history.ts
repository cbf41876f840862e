import type { HistoryEntry } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { parseNumber } from "../options/numbers.ts";
import { formatAge } from "../output/format.ts";
import { note, printResult } from "../output/print.ts";
import { printable, printableLines } from "../output/printable.ts";
import { type Column, table } from "../output/table.ts";

export async function history(
  context: CliContext,
  sandbox: string,
  options: { limit?: string },
): Promise<number> {
  const limit =
    options.limit === undefined
      ? {}
      : { limit: parseNumber(options.limit, "--limit", { least: 1, most: 100_000, whole: true }) };
  const aido = await context.open({ sandbox });
  const entries = await aido.history.list(sandbox, limit);
  if (entries.length === 0) await note(context, "The workspace has no history yet.");
  if (entries.length > 0 || context.globals.json) {
    await printResult(context, entries, () => table(entries, columns(context.now()), context.stdout.columns));
  }
  return 0;
}

/** Between two entries; without any, what the newest exec changed. */
export async function diff(
  context: CliContext,
  sandbox: string,
  from: string | undefined,
  to: string | undefined,
): Promise<number> {
  const aido = await context.open({ sandbox });
  const entries =
    from === undefined || to === undefined ? await aido.history.list(sandbox, { limit: 2 }) : [];
  const [newest, before] = entries;
  const start = from ?? before?.execId;
  const end = to ?? newest?.execId;
  if (start === undefined || end === undefined) {
    throw new AidoError("EXECUTION_NOT_FOUND", "The workspace has no two entries to compare yet", {
      hint: `\`aido history ${sandbox}\` lists its entries.`,
    });
  }
  const changes = await aido.history.diff(sandbox, start, end);
  // A diff is the user's data: it is made harmless on a terminal and left as it is for a program.
  const show = context.stdout.isTerminal ? harmless : String;
  await printResult(context, changes, () => Object.values(changes).map(show).join(""));
  if (Object.keys(changes).length === 0) await note(context, "Nothing differs.");
  return 0;
}

export async function rollback(context: CliContext, sandbox: string, exec: string): Promise<number> {
  const aido = await context.open({ sandbox });
  const entry = await aido.history.rollback(sandbox, exec);
  await printResult(context, entry, () => `The workspace is as it was after ${printable(exec)}\n`);
  return 0;
}

function harmless(diff: string): string {
  return diff.split("\t").map(printableLines).join("\t");
}

function columns(now: Date): Column<HistoryEntry>[] {
  return [
    { title: "EXEC", value: ({ execId }) => execId },
    { title: "COMMIT", value: ({ commitId }) => commitId.slice(0, 10) },
    { title: "WHEN", value: ({ at }) => formatAge(at, now) },
    {
      title: "FILES",
      value: ({ files, truncated }) => `${files.length}${truncated === true ? "+" : ""}`,
      align: "right",
    },
    { title: "WHAT", value: ({ message }) => message.split("\n")[0] ?? "", flexible: true },
  ];
}
