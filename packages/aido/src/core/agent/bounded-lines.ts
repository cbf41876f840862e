const NEWLINE = 0x0a;

/**
 * Lines of a byte stream as text, without their ends. A line over the limit is passed over as a whole, so that whoever
 * writes without end costs no memory.
 */
export async function* boundedLines(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<string, void, undefined> {
  let parts: Uint8Array[] = [];
  let bytes = 0;
  let isTooLong = false;
  const add = (part: Uint8Array): void => {
    bytes += part.byteLength;
    isTooLong ||= bytes > maxBytes;
    if (isTooLong) parts = [];
    else if (part.byteLength > 0) parts.push(part);
  };
  const take = (): string | undefined => {
    const line = isTooLong ? undefined : Buffer.concat(parts).toString("utf8");
    parts = [];
    bytes = 0;
    isTooLong = false;
    return line;
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      add(chunk.subarray(from, end));
      const line = take();
      if (line !== undefined) yield line;
      from = end + 1;
    }
    add(chunk.subarray(from));
  }
  const last = take();
  if (last !== undefined && last !== "") yield last;
}

/** A line that holds one JSON object; anything else, such as a program's own chatter, is undefined. */
export function parseObject(line: string): Readonly<Record<string, unknown>> | undefined {
  if (!line.trimStart().startsWith("{")) return undefined;
  try {
    return asObject(JSON.parse(line));
  } catch {
    return undefined;
  }
}

export function asObject(value: unknown): Readonly<Record<string, unknown>> | undefined {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? (value as Record<string, unknown>) : undefined;
}

/** A count that a sandbox tells: never negative, never more than fits. */
export function asCount(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) && value > 0
    ? Math.min(Math.round(value), Number.MAX_SAFE_INTEGER)
    : 0;
}
