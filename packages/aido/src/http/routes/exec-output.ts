import type { Aido } from "@aido/sdk";
import type { ExecInfo, OutputRange, OutputStream } from "@aido/sdk/protocol";

/** Of each stream in one answer; the rest is read by offset. */
export const MAX_REPLY_BYTES = 8 * 1024 * 1024;
/** Beyond any output. */
const NOTHING = { stdoutOffset: Number.MAX_SAFE_INTEGER, stderrOffset: Number.MAX_SAFE_INTEGER };

/** What is recorded from the given offsets, and where the next read goes on. */
export async function readOutput(
  aido: Aido,
  info: ExecInfo,
  range: OutputRange,
  encoding: "utf8" | "base64",
  signal: AbortSignal,
) {
  const from = { stdout: range.stdoutOffset ?? 0, stderr: range.stderrOffset ?? 0 };
  const stdout = await readStream(aido, info, { stream: "stdout", from: from.stdout, signal });
  const stderr = await readStream(aido, info, { stream: "stderr", from: from.stderr, signal });
  const truncated = stdout.isMore || stderr.isMore;
  const isPart = (isMore: boolean) => encoding === "utf8" && (isMore || info.status === "running");
  const shown = {
    stdout: whole(stdout.parts, isPart(stdout.isMore)),
    stderr: whole(stderr.parts, isPart(stderr.isMore)),
  };
  return {
    stdout: shown.stdout.toString(encoding),
    stderr: shown.stderr.toString(encoding),
    stdoutOffset: from.stdout + shown.stdout.length,
    stderrOffset: from.stderr + shown.stderr.length,
    ...(truncated ? { truncated } : {}),
  };
}

/** By itself, so that what one stream has beyond an answer is not read to reach the other. */
async function readStream(
  aido: Aido,
  info: ExecInfo,
  { stream, from, signal }: { stream: OutputStream; from: number; signal: AbortSignal },
): Promise<{ parts: Uint8Array[]; isMore: boolean }> {
  const parts: Uint8Array[] = [];
  // Of a command that has ended the sizes are final: most say nothing on one stream, many on neither.
  if (info.status !== "running" && info[`${stream}Bytes`] <= from) return { parts, isMore: false };
  let left = MAX_REPLY_BYTES;
  const asked = { ...NOTHING, [`${stream}Offset`]: from };
  for await (const { data } of aido.execs.output(info.sandboxId, info.id, asked, signal)) {
    if (left === 0) return { parts, isMore: true };
    const kept = data.subarray(0, left);
    // A copy: the chunk may be a view into a buffer that its producer uses again.
    parts.push(Uint8Array.from(kept));
    left -= kept.length;
    if (kept.length < data.length) return { parts, isMore: true };
  }
  return { parts, isMore: false };
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
