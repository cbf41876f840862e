import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { AidoError, type OutputChunk, type OutputRange, type OutputStream } from "@aido/sdk/protocol";
import type { FollowedExec } from "./followed-exec.ts";
import { type OutputTurn, RecordedOrder } from "./output-order.ts";
import { RecordedFile } from "./recorded-file.ts";

const STREAMS = ["stdout", "stderr"] as const;
/** Pieces that are read at once and may be tiny: others have their turn after so many. */
const PIECES_PER_TURN = 256;

type Offsets = Record<OutputStream, number>;

/**
 * Recorded output from the given offsets on, in the order in which it came as far as that is known. `follow` is asked
 * again after every change, as recorders may change.
 */
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
  const order = new RecordedOrder(directory);
  try {
    for (let pieces = 1; ; ) {
      signal?.throwIfAborted();
      const exec = await follow();
      // Before reading: what is written while we read is seen in the next round.
      const isOver = range.follow !== true || exec.isEnded();
      const until = { ...exec.sizes() };
      for (const { stream, end } of stretches(order, at, until)) {
        while (at[stream] < end) {
          const offset = at[stream];
          const data = await files[stream].read(offset, end - offset);
          at[stream] += data.length;
          yield { stream, offset, data };
          signal?.throwIfAborted();
          if (pieces++ % PIECES_PER_TURN === 0) await nextTurn();
        }
      }
      if (isOver) return;
      // What came while we read will not be told again.
      const { stdout, stderr } = exec.sizes();
      if (stdout > until.stdout || stderr > until.stderr || exec.isEnded()) continue;
      await exec.change(signal);
    }
  } finally {
    order.close();
    for (const stream of STREAMS) files[stream].close();
  }
}

/** What is to be read next, up to `until`, while `at` moves on with the reader. */
function* stretches(order: RecordedOrder, at: Readonly<Offsets>, until: Offsets): Generator<OutputTurn> {
  while (STREAMS.every((stream) => at[stream] < until[stream])) {
    const turn = order.after(at);
    if (turn === undefined) break;
    yield { stream: turn.stream, end: Math.min(turn.end, until[turn.stream]) };
  }
  for (const stream of STREAMS) yield { stream, end: until[stream] };
}

function toOffset(offset: number | undefined): number {
  if (offset === undefined) return 0;
  if (!Number.isSafeInteger(offset) || offset < 0) {
    throw new AidoError("VALIDATION_ERROR", "An output offset is a whole number of bytes, 0 or more");
  }
  return offset;
}
