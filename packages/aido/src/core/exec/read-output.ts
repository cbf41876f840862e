import { join } from "node:path";
import { AidoError, type OutputChunk, type OutputRange } from "@aido/sdk/protocol";
import type { FollowedExec } from "./followed-exec.ts";
import { RecordedFile } from "./recorded-file.ts";

const STREAMS = ["stdout", "stderr"] as const;

/** Recorded output from the given offsets on. `follow` is asked again after every change, as recorders may change. */
export async function* readOutput(
  directory: string,
  range: OutputRange,
  follow: () => FollowedExec | Promise<FollowedExec>,
  signal?: AbortSignal,
): AsyncGenerator<OutputChunk, void, undefined> {
  const at = { stdout: toOffset(range.stdoutOffset), stderr: toOffset(range.stderrOffset) };
  const files = {
    stdout: new RecordedFile(join(directory, "stdout")),
    stderr: new RecordedFile(join(directory, "stderr")),
  };
  try {
    for (;;) {
      signal?.throwIfAborted();
      const exec = await follow();
      // Before reading: what is written while we read is seen in the next round.
      const isOver = range.follow !== true || exec.isEnded();
      const until = { ...exec.sizes() };
      for (let isMore = true; isMore; ) {
        isMore = false;
        for (const stream of STREAMS) {
          if (at[stream] >= until[stream]) continue;
          const data = await files[stream].read(at[stream], until[stream] - at[stream]);
          const offset = at[stream];
          at[stream] += data.length;
          isMore = true;
          yield { stream, offset, data };
          signal?.throwIfAborted();
        }
      }
      if (isOver) return;
      // What came while we read will not be told again.
      const { stdout, stderr } = exec.sizes();
      if (stdout > until.stdout || stderr > until.stderr || exec.isEnded()) continue;
      await exec.change(signal);
    }
  } finally {
    for (const stream of STREAMS) files[stream].close();
  }
}

function toOffset(offset: number | undefined): number {
  if (offset === undefined) return 0;
  if (!Number.isSafeInteger(offset) || offset < 0) {
    throw new AidoError("VALIDATION_ERROR", "An output offset is a whole number of bytes, 0 or more");
  }
  return offset;
}
