/**
 * A body whose first chunk has arrived: whatever fails before it (no such file, no permission) is still an
 * error reply with its status, not a broken 200. A source that is made here gets the signal that is aborted when the
 * client leaves.
 */
export async function firstChunkThenStream(
  source: AsyncIterable<Uint8Array> | ((signal: AbortSignal) => AsyncIterable<Uint8Array>),
  signal?: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const left = new AbortController();
  const over = signal === undefined ? left.signal : AbortSignal.any([signal, left.signal]);
  const iterator = (typeof source === "function" ? source(over) : source)[Symbol.asyncIterator]();
  let first: IteratorResult<Uint8Array> | undefined = await iterator.next();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = first ?? (await iterator.next());
        first = undefined;
        if (left.signal.aborted) return;
        if (done === true) controller.close();
        // A copy: the chunk may be a view into a buffer that its producer uses again.
        else controller.enqueue(Uint8Array.from(value));
      },
      async cancel() {
        left.abort();
        await iterator.return?.().catch(() => undefined);
      },
    },
    { highWaterMark: 1 },
  );
}
