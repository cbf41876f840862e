import type { CliContext } from "../context.ts";
import { printResult } from "../output/print.ts";
import { printable } from "../output/printable.ts";
import { table } from "../output/table.ts";

export async function listWorkspaces(context: CliContext, options: { all?: boolean }): Promise<number> {
  const aido = await context.open();
  const workspaces = await aido.workspaces.list({ all: options.all });
  await printResult(context, workspaces, () => {
    if (workspaces.length === 0)
      return "There are no workspaces. `aido create --workspace <name>` makes one.\n";
    return table(
      workspaces,
      [
        { title: "NAME", value: ({ name }) => name },
        ...(options.all === true ? [{ title: "OWNER", value: ({ owner }: { owner: string }) => owner }] : []),
        { title: "SANDBOX", value: ({ sandboxId }) => sandboxId ?? "-" },
        { title: "LAST USED", value: ({ lastUsedAt }) => lastUsedAt.toISOString() },
        { title: "ENDS", value: ({ expiresAt }) => expiresAt?.toISOString() ?? "-" },
      ],
      context.stdout.columns,
    );
  });
  return 0;
}

export async function removeWorkspaces(
  context: CliContext,
  names: readonly string[],
  options: { owner?: string },
): Promise<number> {
  const aido = await context.open();
  for (const name of names) {
    await aido.workspaces.remove(name, options);
    await printResult(context, { name, removed: true }, () => `Removed ${printable(name)}\n`);
  }
  return 0;
}
