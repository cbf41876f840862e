import { AidoError } from "@aido/sdk/protocol";
import { checkCommand } from "../../core/swarm/approval/check-command.ts";
import { APPROVAL_POLICY } from "../../core/swarm/approval/policy.ts";
import { isInsideProject } from "../../core/swarm/approval/project-path.ts";
import type { CliContext } from "../context.ts";
import { printResult } from "../output/print.ts";
import { printable } from "../output/printable.ts";

export async function swarmApprove(
  context: CliContext,
  command: readonly string[],
  options: { policy?: boolean },
): Promise<number> {
  if (options.policy) {
    // Both at once would print a policy and end with 0, which reads as an approval.
    if (command.length > 0) throw new AidoError("VALIDATION_ERROR", "--policy takes no command");
    await context.stdout.write(`${JSON.stringify(APPROVAL_POLICY, null, 2)}\n`);
    return 0;
  }
  const isInside = (path: string) => isInsideProject(context.cwd, path);
  const approval = await checkCommand(command, { isInside });
  await printResult(context, approval, () =>
    approval.approved ? `approved: ${approval.rule}\n` : `refused: ${printable(approval.reason)}\n`,
  );
  return approval.approved ? 0 : 1;
}
