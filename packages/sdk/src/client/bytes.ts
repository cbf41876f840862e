import { readChunk } from "./read-chunk.ts";

/** Base64 with what browsers have too. */
export function fromBase64(text: string): Uint8Array {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index++) bytes[index] = binary.charCodeAt(index);
  return bytes;
}

/** The body of a reply. One that breaks off is an error, never a short file. */
export async function* chunksOf(
  response: Response,
  server: string,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array> {
  if (response.body === null) return;
  const reader = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await readChunk(reader, { server, signal });
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

type Body = NonNullable<RequestInit["body"]>;
const SMALL_BYTES = 1024 * 1024;

/** Little is sent in one piece, which every browser can do; only much is streamed. */
export async function bodyOf(content: Uint8Array | AsyncIterable<Uint8Array>): Promise<Body> {
  if (content instanceof Uint8Array) return Uint8Array.from(content);
  const iterator = content[Symbol.asyncIterator]();
  const first: Uint8Array[] = [];
  for (let length = 0; length <= SMALL_BYTES; ) {
    const { done, value } = await iterator.next();
    if (done === true) return joined(first);
    first.push(Uint8Array.from(value));
    length += value.length;
  }
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const kept = first.shift();
      if (kept !== undefined) return controller.enqueue(kept);
      const { done, value } = await iterator.next();
      if (done === true) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}

export async function concat(parts: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const kept: Uint8Array[] = [];
  for await (const part of parts) kept.push(part);
  return joined(kept);
}

export function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
