import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { AidoError, type OutputChunk, type OutputRange, type OutputStream } from "@aido/sdk/protocol";
import type { FollowedExec } from "./followed-exec.ts";

const CHUNK_BYTES = 65_536;
const STREAMS = ["stdout", "stderr"] as const;

/** Recorded output from the given offsets on. `follow` is asked again after every change, as recorders may change. */
export async function* readOutput(
  directory: string,
  range: OutputRange,
  follow: () => FollowedExec | Promise<FollowedExec>,
  signal?: AbortSignal,
): AsyncGenerator<OutputChunk, void, undefined> {
  const at = { stdout: toOffset(range.stdoutOffset), stderr: toOffset(range.stderrOffset) };
  const files: Partial<Record<OutputStream, FileHandle>> = {};
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
          files[stream] ??= await openRecorded(join(directory, stream));
          const data = await readAt(files[stream], at[stream], until[stream] - at[stream]);
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
    for (const stream of STREAMS) await files[stream]?.close();
  }
}

async function readAt(file: FileHandle, position: number, available: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(Math.min(available, CHUNK_BYTES));
  const { bytesRead } = await file.read(buffer, 0, buffer.length, position);
  if (bytesRead === 0) throw outputLost(new Error("the recorded file is shorter than it was"));
  return buffer.subarray(0, bytesRead);
}

async function openRecorded(path: string): Promise<FileHandle> {
  try {
    return await open(path, "r");
  } catch (error) {
    throw outputLost(error);
  }
}

function outputLost(cause: unknown): AidoError {
  return new AidoError("OUTPUT_LOST", "The recorded output is no longer there", {
    hint: "Was the sandbox destroyed meanwhile?",
    cause,
  });
}

function toOffset(offset: number | undefined): number {
  if (offset === undefined) return 0;
  if (!Number.isSafeInteger(offset) || offset < 0) {
    throw new AidoError("VALIDATION_ERROR", "An output offset is a whole number of bytes, 0 or more");
  }
  return offset;
}
