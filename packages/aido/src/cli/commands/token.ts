import type { CliContext } from "../context.ts";
import { note, printResult } from "../output/print.ts";

/** On standard output is the token alone, so that a script can keep it. */
export async function issueToken(context: CliContext, sandbox: string): Promise<number> {
  const aido = await context.open();
  const access = await aido.sandboxes.issueToken(sandbox);
  await printResult(context, access, () => `${access.token}\n`);
  await note(context, `Sidecar API: ${access.sidecarUrl}  The former token opens nothing any more.`);
  return 0;
}
