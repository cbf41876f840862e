import { mkdir } from "node:fs/promises";
import { resolve } from "node:path";
import type { Runs } from "@aido/sdk";
import { AidoError, isAidoError } from "@aido/sdk/protocol";
import { HostTree } from "../archive/host-tree.ts";
import { safeComponents } from "../archive/safe-name.ts";
import type { CliContext } from "../context.ts";
import { note, printResult, warn } from "../output/print.ts";
import { printable } from "../output/printable.ts";

export async function outputs(
  context: CliContext,
  sandbox: string | undefined,
  options: { to?: string },
): Promise<number> {
  const { runs } = await context.open({ sandbox });
  const { id } = await runs.get(sandbox);
  const summary = await runs.summary(id);
  if (summary === undefined) {
    throw new AidoError(
      "EXECUTION_CONFLICT",
      `The run of ${id} has not ended, so its outputs are not there`,
      {
        hint: `\`aido logs ${id} --follow\` shows it until it has.`,
        details: { sandboxId: id },
      },
    );
  }
  const files = summary.outputFiles;
  if (options.to !== undefined) {
    const to = resolve(context.cwd, options.to);
    await copy(runs, { id, files, to }, (file) =>
      warn(
        context,
        `${printable(file)} was left out: its name is not UTF-8; it is in outputs/ of sandbox ${id}`,
      ),
    );
  }
  await printResult(context, files, () => files.map((file) => `${printable(file)}\n`).join(""));
  if (files.length === 0) await note(context, "The run has left no outputs.");
  else if (options.to === undefined)
    await note(context, `Copy them with: aido outputs ${id} --to <directory>`);
  return 0;
}

/** Names come from the sandbox: whatever they say, nothing is written outside the directory. */
async function copy(
  runs: Runs,
  { id, files, to }: { id: string; files: readonly string[]; to: string },
  onSkip: (file: string) => Promise<void>,
): Promise<void> {
  await mkdir(to, { recursive: true });
  await using tree = await HostTree.open(to);
  for (const file of files) {
    const components = safeComponents(file);
    if (components === undefined)
      throw new AidoError("INVALID_PATH", `${JSON.stringify(file)} is no file name`);
    try {
      await tree.file(components, { mode: 0o644, content: runs.output(file, id) });
    } catch (thrown) {
      // What such a name says in bytes is not known here.
      if (!file.includes("\ufffd") || !isAidoError(thrown, "FILE_NOT_FOUND")) throw thrown;
      await onSkip(file);
    }
  }
}
