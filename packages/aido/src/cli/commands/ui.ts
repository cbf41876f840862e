import type { CliContext } from "../context.ts";
import { printResult } from "../output/print.ts";

const USE_INSTEAD = ["aido ls", "aido stats --watch", "aido logs --follow", "aido shell <sandbox>"];

export async function ui(context: CliContext): Promise<number> {
  await printResult(context, { status: "coming soon", instead: USE_INSTEAD }, () =>
    ["Coming soon.", "", "Until then:", ...USE_INSTEAD.map((line) => `  ${line}`), ""].join("\n"),
  );
  return 0;
}
