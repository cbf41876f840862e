import type { CliContext } from "../context.ts";
import { printResult } from "../output/print.ts";
import { table } from "../output/table.ts";

export async function metrics(context: CliContext): Promise<number> {
  const aido = await context.open();
  const values = await aido.metrics();
  await printResult(context, values, () =>
    table(
      Object.entries(values),
      [
        { title: "METRIC", value: ([name]) => name },
        { title: "VALUE", value: ([, value]) => String(value), align: "right" },
      ],
      context.stdout.columns,
    ),
  );
  return 0;
}
