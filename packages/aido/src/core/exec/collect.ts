import type { Execs } from "@aido/sdk";
import type { ExecInfo, ExecRequest, OutputStream } from "@aido/sdk/protocol";

export interface Collected {
  info: ExecInfo;
  stdout: Buffer;
  stderr: Buffer;
  /** Whether there was more than `maxBytes`; the rest is still in the recording. */
  truncated: Readonly<Record<OutputStream, boolean>>;
}

/** Runs a command to its end and keeps the first `maxBytes` of each stream. An abort kills the command. */
export async function collect(
  execs: Execs,
  sandbox: string,
  request: ExecRequest,
  options: { maxBytes: number; signal?: AbortSignal | undefined },
): Promise<Collected> {
  const { maxBytes, signal } = options;
  const started = await execs.start(sandbox, request, signal);
  let info: ExecInfo;
  try {
    info = await execs.wait(sandbox, started.id, signal);
  } catch (error) {
    if (signal?.aborted) await execs.kill(sandbox, started.id, { signal: "KILL" }).catch(() => undefined);
    throw error;
  }
  const kept: Record<OutputStream, Uint8Array[]> = { stdout: [], stderr: [] };
  const left: Record<OutputStream, number> = {
    stdout: Math.min(maxBytes, info.stdoutBytes),
    stderr: Math.min(maxBytes, info.stderrBytes),
  };
  if (left.stdout > 0 || left.stderr > 0) {
    for await (const { stream, data } of execs.output(sandbox, info.id, {}, signal)) {
      kept[stream].push(data.subarray(0, left[stream]));
      left[stream] -= Math.min(left[stream], data.byteLength);
      if (left.stdout === 0 && left.stderr === 0) break;
    }
  }
  return {
    info,
    stdout: Buffer.concat(kept.stdout),
    stderr: Buffer.concat(kept.stderr),
    truncated: { stdout: info.stdoutBytes > maxBytes, stderr: info.stderrBytes > maxBytes },
  };
}
