import type { OutputChunk, OutputStream } from "@aido/sdk/protocol";

/** A piece of a command's output as one JSON line; `base64` stands for bytes that are not UTF-8. */
export interface OutputEvent {
  type: "output";
  stream: OutputStream;
  offset: number;
  step?: string;
  text?: string;
  base64?: string;
}

/** Turns chunks into events. A letter that is split between two chunks waits for its other half. */
export class OutputEvents {
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  readonly #held: Record<OutputStream, Uint8Array> = { stdout: new Uint8Array(), stderr: new Uint8Array() };

  next(chunk: OutputChunk & { step?: string | undefined }): OutputEvent | undefined {
    const held = this.#held[chunk.stream];
    const bytes = held.length === 0 ? chunk.data : Buffer.concat([held, chunk.data]);
    const keep = unfinished(bytes);
    // The producer may use its buffer again, so what waits is a copy.
    this.#held[chunk.stream] = Uint8Array.from(bytes.subarray(bytes.length - keep));
    if (bytes.length === keep) return undefined;
    const event = this.#event(
      chunk.stream,
      chunk.offset - held.length,
      bytes.subarray(0, bytes.length - keep),
    );
    return chunk.step === undefined ? event : { ...event, step: chunk.step };
  }

  /** What still waits when a stream has ended; its other half never came. */
  rest(total: Record<OutputStream, number>): OutputEvent[] {
    return (["stdout", "stderr"] as const).flatMap((stream) => {
      const held = this.#held[stream];
      return held.length === 0 ? [] : [this.#event(stream, total[stream] - held.length, held)];
    });
  }

  #event(stream: OutputStream, offset: number, bytes: Uint8Array): OutputEvent {
    try {
      return { type: "output", stream, offset, text: this.#decoder.decode(bytes) };
    } catch {
      return { type: "output", stream, offset, base64: Buffer.from(bytes).toString("base64") };
    }
  }
}

/** How many bytes at the end begin a UTF-8 sequence that is not complete. */
function unfinished(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return 0;
    if (byte > 0xf4) return 0;
    if (byte >= 0xc2) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0;
  }
  return 0;
}
