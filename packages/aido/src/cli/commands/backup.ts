import type { CliContext } from "../context.ts";
import { formatBytes } from "../output/format.ts";
import { printResult } from "../output/print.ts";
import { printable } from "../output/printable.ts";

export async function backup(context: CliContext, file: string): Promise<number> {
  const made = await context.backUp(file);
  await printResult(context, made, () => `Wrote ${printable(made.file)}, ${formatBytes(made.bytes)}\n`);
  await saySkipped(context, made.skipped);
  return 0;
}

export async function restore(context: CliContext, file: string): Promise<number> {
  const restored = await context.restore(file);
  const { sandboxes, dataDir, createdAt } = restored;
  const what = sandboxes === 1 ? "1 sandbox" : `${sandboxes} sandboxes`;
  await printResult(
    context,
    restored,
    () => `Restored ${what} of ${createdAt} into ${printable(dataDir)}; none runs\n`,
  );
  await saySkipped(context, restored.skipped);
  return 0;
}

async function saySkipped(context: CliContext, count: number): Promise<void> {
  if (count === 0) return;
  await context.stderr.write(
    `${count} files of sandboxes are not in it: their paths are too long or closed to aido\n`,
  );
}
