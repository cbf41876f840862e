import type { Execs } from "./aido.ts";
import type { ExecInfo, ExecRequest, OutputStream } from "./protocol/index.ts";

export interface CollectedExec {
  info: ExecInfo;
  stdout: Uint8Array;
  stderr: Uint8Array;
  /** True for a stream that had more than `maxBytes`; the rest is recorded, only not collected here. */
  truncated: Readonly<Record<OutputStream, boolean>>;
}

/** Runs a command to its end and collects its output, at most `maxBytes` of each stream in memory. */
export async function runExec(
  execs: Execs,
  sandbox: string,
  request: ExecRequest,
  options: { maxBytes?: number; signal?: AbortSignal } = {},
): Promise<CollectedExec> {
  const limit = options.maxBytes ?? 16 * 1024 * 1024;
  const started = await execs.start(sandbox, request, options.signal);
  const collected = { stdout: new Collector(limit), stderr: new Collector(limit) };
  for await (const chunk of execs.output(sandbox, started.id, { follow: true }, options.signal)) {
    collected[chunk.stream].add(chunk.data);
  }
  const info = await execs.wait(sandbox, started.id, options.signal);
  return {
    info,
    stdout: collected.stdout.bytes(),
    stderr: collected.stderr.bytes(),
    truncated: { stdout: collected.stdout.truncated, stderr: collected.stderr.truncated },
  };
}

class Collector {
  readonly #limit: number;
  readonly #chunks: Uint8Array[] = [];
  #length = 0;
  truncated = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(data: Uint8Array): void {
    const room = this.#limit - this.#length;
    if (data.length > room) this.truncated = true;
    if (room <= 0) return;
    // A copy: the chunk may be a view into a buffer that its producer uses again.
    const kept = Uint8Array.from(data.subarray(0, room));
    this.#chunks.push(kept);
    this.#length += kept.length;
  }

  bytes(): Uint8Array {
    const whole = new Uint8Array(this.#length);
    let at = 0;
    for (const chunk of this.#chunks) {
      whole.set(chunk, at);
      at += chunk.length;
    }
    return whole;
  }
}
