import type { ExecInfo } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { note } from "../output/print.ts";
import { EXIT } from "./exit-code.ts";

/** Ends that the exit code alone does not tell. */
export async function explainEnd(context: CliContext, info: ExecInfo): Promise<void> {
  const sentence = {
    timeout: `The command was killed: its time was up (exit ${EXIT.timedOut}).`,
    out_of_memory: "The command was killed: it ran out of memory. Give the sandbox more with --memory.",
    output_limit: "The command was killed: it wrote more output than the sandbox keeps.",
    lost: "The sandbox went away before the command ended; how it ended is not known.",
    running: undefined,
    exited: undefined,
    killed: undefined,
  }[info.status];
  if (sentence !== undefined) await note(context, `aido: ${sentence}`);
}
