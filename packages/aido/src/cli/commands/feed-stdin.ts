import type { Execs } from "@aido/sdk";
import { isAidoError } from "@aido/sdk/protocol";
import type { Keyboard } from "../context.ts";

/**
 * Passes standard input on until it ends, then closes the command's. The command may stop reading at any time
 * (it ended, or it closed its input as `head` does): that is no failure, and nothing more is read.
 */
export async function feedStdin(
  execs: Execs,
  exec: { sandboxId: string; id: string },
  stdin: Keyboard,
  signal: AbortSignal,
): Promise<void> {
  try {
    for await (const chunk of stdin.chunks()) {
      if (signal.aborted) return;
      await execs.writeStdin(exec.sandboxId, exec.id, chunk, signal);
    }
    if (!signal.aborted) await execs.closeStdin(exec.sandboxId, exec.id, signal);
  } catch (thrown) {
    if (!signal.aborted && !isGone(thrown)) throw thrown;
  }
}

function isGone(thrown: unknown): boolean {
  return isAidoError(thrown, "EXECUTION_NOT_FOUND") || isAidoError(thrown, "EXECUTION_CONFLICT");
}
