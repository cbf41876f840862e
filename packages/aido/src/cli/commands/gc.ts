import type { CollectReport } from "@aido/sdk";
import type { CliContext } from "../context.ts";
import { printResult } from "../output/print.ts";
import { printable } from "../output/printable.ts";
import { interruptible } from "./interrupt.ts";

export async function gc(context: CliContext, options: { dryRun?: boolean }): Promise<number> {
  const aido = await context.open();
  return interruptible(context, async (signal) => {
    const report = await aido.gc.collect({ dryRun: options.dryRun, signal });
    await printResult(context, report, () => textOf(report, options.dryRun === true));
    return report.failed.length === 0 ? 0 : 1;
  });
}

function textOf(report: CollectReport, isDryRun: boolean): string {
  const would = isDryRun ? "would be " : "";
  const lines = [
    ...report.warmed.map((id) => `${id}  ${would}warm: an image instead of a container`),
    ...report.cooled.map((id) => `${id}  ${would}cold: in the object store`),
    ...report.removed.map((id) => `${id}  ${would}removed`),
    ...report.failed.map(({ id, message }) => `${id}  failed: ${message}`),
  ];
  if (lines.length === 0) return "No sandbox has been stopped for long enough.\n";
  const counts = `${report.warmed.length} warm, ${report.cooled.length} cold, ${report.removed.length} removed`;
  return [...lines, `${counts}, ${report.failed.length} failed`]
    .map((line) => `${printable(line)}\n`)
    .join("");
}
