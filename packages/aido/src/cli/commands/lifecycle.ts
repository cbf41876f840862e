import type { SandboxInfo } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { parseDuration } from "../options/duration.ts";
import { formatUntil } from "../output/format.ts";
import { printResult } from "../output/print.ts";
import { printable } from "../output/printable.ts";

export async function start(context: CliContext, sandboxes: readonly string[]): Promise<number> {
  const aido = await context.open({ sandbox: sandboxes[0] });
  return each(context, sandboxes, (sandbox) => aido.sandboxes.start(sandbox), "Started");
}

export async function stop(
  context: CliContext,
  sandboxes: readonly string[],
  options: { grace?: string },
): Promise<number> {
  const graceMs = options.grace === undefined ? undefined : parseDuration(options.grace, "--grace");
  const aido = await context.open({ sandbox: sandboxes[0] });
  return each(
    context,
    sandboxes,
    (sandbox) => aido.sandboxes.stop(sandbox, graceMs === undefined ? {} : { graceMs }),
    "Stopped",
  );
}

export async function setTtl(context: CliContext, sandbox: string, ttl: string): Promise<number> {
  const ttlMs = parseDuration(ttl, "<duration>");
  const aido = await context.open({ sandbox });
  const info = await aido.sandboxes.setTtl(sandbox, ttlMs);
  await printResult(
    context,
    info,
    () => `${info.id} ends in: ${formatUntil(info.expiresAt, context.now())}\n`,
  );
  return 0;
}

async function each(
  context: CliContext,
  sandboxes: readonly string[],
  act: (sandbox: string) => Promise<SandboxInfo>,
  done: string,
): Promise<number> {
  const infos: SandboxInfo[] = [];
  for (const sandbox of sandboxes) {
    const info = await act(sandbox);
    infos.push(info);
    if (!context.globals.json) await context.stdout.write(`${done} ${printable(info.id)}\n`);
  }
  if (context.globals.json) await printResult(context, infos, () => "");
  return 0;
}
