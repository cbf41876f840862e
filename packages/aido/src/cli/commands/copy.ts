import { AidoError } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { formatBytes } from "../output/format.ts";
import { note, printResult, warn } from "../output/print.ts";
import { printable } from "../output/printable.ts";
import { parseCopySide } from "./copy-side.ts";

export interface Copied {
  files: number;
  bytes: number;
  target: string;
  skipped: readonly { name: string; why: string }[];
}

const MOST_WARNINGS = 10;

export async function copy(context: CliContext, source: string, target: string): Promise<number> {
  const from = parseCopySide(source);
  const to = parseCopySide(target);
  if ((from.sandbox === undefined) === (to.sandbox === undefined)) {
    throw new AidoError(
      "VALIDATION_ERROR",
      from.sandbox === undefined ? "Neither side is in a sandbox" : "Both sides are in a sandbox",
      { hint: "Write one side as <sandbox>:<path>, such as: aido cp data.csv web:/work/" },
    );
  }
  const aido = await context.open({ sandbox: from.sandbox ?? to.sandbox });
  const request = { from: from.path, to: to.path, cwd: context.cwd };
  let copied: Copied;
  if (to.sandbox !== undefined) {
    const { copyIn } = await import("./copy-in.ts");
    copied = await copyIn(aido, { ...request, sandbox: to.sandbox });
  } else {
    const { copyOut } = await import("./copy-out.ts");
    copied = await copyOut(aido, { ...request, sandbox: from.sandbox ?? "" });
  }
  await report(context, copied);
  return 0;
}

async function report(context: CliContext, copied: Copied): Promise<void> {
  for (const { name, why } of copied.skipped.slice(0, MOST_WARNINGS)) {
    await warn(context, `${printable(name)} was left out: ${why}`);
  }
  const more = copied.skipped.length - MOST_WARNINGS;
  if (more > 0) await warn(context, `${more} more were left out`);
  if (context.globals.json) return printResult(context, copied, () => "");
  const files = copied.files === 1 ? "1 file" : `${copied.files} files`;
  await note(context, `Copied ${files} (${formatBytes(copied.bytes)}) to ${printable(copied.target)}`);
}
