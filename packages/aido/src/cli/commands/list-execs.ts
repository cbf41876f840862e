import type { CliContext } from "../context.ts";
import { note, printResult } from "../output/print.ts";
import { table } from "../output/table.ts";
import { EXEC_COLUMNS } from "./inspect.ts";

export async function listExecs(context: CliContext, sandbox: string): Promise<number> {
  const aido = await context.open({ sandbox });
  const info = await aido.sandboxes.get(sandbox);
  const execs = await aido.execs.list(info.id);
  if (execs.length === 0) await note(context, `Nothing has run yet. Try: aido exec ${info.id} -- <command>`);
  if (execs.length > 0 || context.globals.json) {
    await printResult(context, execs, () => table(execs, EXEC_COLUMNS, context.stdout.columns));
  }
  return 0;
}

export async function killExec(
  context: CliContext,
  sandbox: string,
  exec: string,
  options: { signal?: string },
): Promise<number> {
  const aido = await context.open({ sandbox });
  const { id } = await aido.sandboxes.get(sandbox);
  await aido.execs.kill(id, exec, { signal: options.signal ?? "SIGTERM" });
  await printResult(context, { sandboxId: id, exec }, () => `Signalled ${exec}\n`);
  return 0;
}
