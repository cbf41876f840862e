import type { CliContext } from "../context.ts";
import { printResult } from "../output/print.ts";
import { table } from "../output/table.ts";

export async function showConfig(context: CliContext): Promise<number> {
  const settings = context.settings();
  await printResult(context, settings, () =>
    table(
      settings,
      [
        { title: "KEY", value: ({ key }) => key },
        {
          title: "VALUE",
          value: ({ value }) => (typeof value === "string" ? value : (JSON.stringify(value) ?? "-")),
          flexible: true,
        },
        { title: "FROM", value: ({ source }) => source },
      ],
      context.stdout.columns,
    ),
  );
  return 0;
}
