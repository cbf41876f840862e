import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { AidoError, type RunSummary } from "@aido/sdk/protocol";
import type { RunLayout } from "./run-layout.ts";

const CHUNK_BYTES = 64 * 1024;
/** Written by aido beside what was captured. */
const OWN_FILES = ["stdout.log", "stderr.log", "summary.json"];

/** A file that was captured from a run. Only names that the capture itself wrote down are opened. */
export async function* readRunOutput(
  layout: RunLayout,
  request: { path: string; summary: RunSummary | undefined; signal: AbortSignal | undefined },
): AsyncIterable<Uint8Array> {
  const { path, summary, signal } = request;
  const isKnown = summary !== undefined && [...OWN_FILES, ...summary.outputFiles].includes(path);
  if (!isKnown) throw missing(path, summary);
  const file = await open(join(layout.outputs, path), constants.O_RDONLY | constants.O_NOFOLLOW).catch(
    (cause: unknown) => {
      throw missing(path, summary, cause);
    },
  );
  try {
    for (;;) {
      signal?.throwIfAborted();
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES);
      if (bytesRead === 0) return;
      yield chunk.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

function missing(path: string, summary: RunSummary | undefined, cause?: unknown): AidoError {
  const why = summary === undefined ? "The run has not ended" : "The run left no such file";
  return new AidoError("FILE_NOT_FOUND", `There is no output ${JSON.stringify(path.slice(0, 200))}: ${why}`, {
    hint: "The summary's outputFiles names what there is.",
    details: { path: path.slice(0, 200) },
    cause,
  });
}
