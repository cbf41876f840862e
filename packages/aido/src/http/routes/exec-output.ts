import type { Aido } from "@aido/sdk";
import type { ExecInfo, OutputRange } from "@aido/sdk/protocol";

/** Of each stream in one answer; the rest is read by offset. */
export const MAX_REPLY_BYTES = 8 * 1024 * 1024;

/** What is recorded from the given offsets, and where the next read goes on. */
export async function readOutput(
  aido: Aido,
  info: ExecInfo,
  range: OutputRange,
  encoding: "utf8" | "base64",
  signal: AbortSignal,
) {
  const from = { stdout: range.stdoutOffset ?? 0, stderr: range.stderrOffset ?? 0 };
  const parts = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
  const left = { stdout: MAX_REPLY_BYTES, stderr: MAX_REPLY_BYTES };
  let truncated = false;
  const asked = { stdoutOffset: from.stdout, stderrOffset: from.stderr };
  // Of a command that has ended the sizes are final: most say nothing on one stream, many on neither.
  const isNothing =
    info.status !== "running" && info.stdoutBytes <= from.stdout && info.stderrBytes <= from.stderr;
  const chunks = isNothing ? [] : aido.execs.output(info.sandboxId, info.id, asked, signal);
  for await (const chunk of chunks) {
    const kept = chunk.data.subarray(0, left[chunk.stream]);
    truncated ||= kept.length < chunk.data.length;
    // A copy: the chunk may be a view into a buffer that its producer uses again.
    parts[chunk.stream].push(Uint8Array.from(kept));
    left[chunk.stream] -= kept.length;
    if (left.stdout === 0 && left.stderr === 0) break;
  }
  const isPart = encoding === "utf8" && (truncated || info.status === "running");
  const stdout = whole(parts.stdout, isPart);
  const stderr = whole(parts.stderr, isPart);
  return {
    stdout: stdout.toString(encoding),
    stderr: stderr.toString(encoding),
    stdoutOffset: from.stdout + stdout.length,
    stderrOffset: from.stderr + stderr.length,
    ...(truncated ? { truncated } : {}),
  };
}

/** Text that goes on must not be cut within a character: its first bytes come with the next read. */
function whole(parts: readonly Uint8Array[], isPart: boolean): Buffer {
  const bytes = Buffer.concat(parts);
  return isPart ? bytes.subarray(0, bytes.length - unfinished(bytes)) : bytes;
}

/** How many bytes at the end begin a character of UTF-8 that is not complete. */
export function unfinished(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return length > back ? back : 0;
  }
  return 0;
}
