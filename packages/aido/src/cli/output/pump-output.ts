import type { OutputChunk, OutputStream } from "@aido/sdk/protocol";
import type { CliContext } from "../context.ts";
import { isBrokenPipe } from "./byte-sink.ts";
import { OutputEvents } from "./output-event.ts";
import { printJsonLine } from "./print.ts";

export interface PumpOptions {
  /** Called once when nobody reads standard output any more. */
  onClosed?: () => void;
  /** Streams that are not shown. */
  hide?: readonly OutputStream[];
}

/**
 * Passes a command's output on, byte for byte and one chunk at a time: the next chunk is asked for when this one
 * has been taken, so a slow reader slows the command and memory stays flat.
 */
export async function pumpOutput(
  context: CliContext,
  chunks: AsyncIterable<OutputChunk & { step?: string | undefined }>,
  options: PumpOptions = {},
): Promise<void> {
  const closed = { stdout: false, stderr: false };
  const total = { stdout: 0, stderr: 0 };
  const events = new OutputEvents();
  const attempt = async (stream: OutputStream, write: () => Promise<void>): Promise<void> => {
    if (closed[stream]) return;
    try {
      await write();
    } catch (thrown) {
      if (!isBrokenPipe(thrown)) throw thrown;
      closed[stream] = true;
      if (stream === "stdout") options.onClosed?.();
    }
  };
  for await (const chunk of chunks) {
    total[chunk.stream] = chunk.offset + chunk.data.length;
    if (options.hide?.includes(chunk.stream)) continue;
    if (!context.globals.json) {
      await attempt(chunk.stream, () => context[chunk.stream].write(chunk.data));
      continue;
    }
    const event = events.next(chunk);
    if (event) await attempt("stdout", () => printJsonLine(context, event));
  }
  if (!context.globals.json) return;
  for (const event of events.rest(total)) await attempt("stdout", () => printJsonLine(context, event));
}
