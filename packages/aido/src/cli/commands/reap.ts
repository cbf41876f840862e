import type { ReapReport } from "@aido/sdk";
import type { CliContext } from "../context.ts";
import { printResult } from "../output/print.ts";
import { printable } from "../output/printable.ts";
import { interruptible } from "./interrupt.ts";

export async function reap(context: CliContext, options: { dryRun?: boolean }): Promise<number> {
  const aido = await context.open();
  return interruptible(context, async (signal) => {
    const report = await aido.reaper.reap({ dryRun: options.dryRun, signal });
    await printResult(context, report, () => textOf(report, options.dryRun === true));
    return report.failed.length === 0 ? 0 : 1;
  });
}

function textOf(report: ReapReport, isDryRun: boolean): string {
  const would = isDryRun ? "would be " : "";
  const lines = [
    ...report.idle.map((id) => `${id}  ${would}stopped: nobody uses it`),
    ...report.expired.map((id) => `${id}  ${would}destroyed: its time is over`),
    ...report.busy.map((id) => `${id}  runs on: it is at work`),
    ...report.failed.map(({ id, message }) => `${id}  failed: ${message}`),
  ];
  if (lines.length === 0) return "Nothing is idle, and nothing has reached the end of its life.\n";
  return lines.map((line) => `${printable(line)}\n`).join("");
}
