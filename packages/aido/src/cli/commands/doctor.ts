import type { CliContext, DoctorCheck } from "../context.ts";
import { printResult } from "../output/print.ts";
import { printable } from "../output/printable.ts";
import { usesColour } from "../output/uses-colour.ts";

const MARKS = { ok: "ok", warning: "warn", failed: "FAIL" } as const;
const COLOURS = { ok: 32, warning: 33, failed: 31 } as const;

export async function doctor(context: CliContext): Promise<number> {
  context.progress.show("Looking at this machine");
  const report = await context.doctor();
  context.progress.clear();
  const colour = usesColour(context.env, context.stdout);
  await printResult(context, report, () => {
    const checks = report.checks.map((check) => describe(check, colour)).join("");
    const verdict = report.ok
      ? `\nSandboxes run with the driver ${printable(report.driver ?? "-")}.\n`
      : "\nSandboxes cannot run yet: see what failed.\n";
    return checks + verdict;
  });
  return report.ok ? 0 : 1;
}

function describe({ name, status, message, hint }: DoctorCheck, colour: boolean): string {
  const mark = MARKS[status].padEnd(4);
  const shown = colour ? `\u001b[${COLOURS[status]}m${mark}\u001b[0m` : mark;
  const next = hint === undefined || status === "ok" ? "" : `      ${" ".repeat(20)}${printable(hint)}\n`;
  return `${shown}  ${printable(name).padEnd(20)}${printable(message)}\n${next}`;
}
