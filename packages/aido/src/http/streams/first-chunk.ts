/**
 * A body whose first chunk has arrived: whatever fails before it (no such file, no permission) is still an
 * error reply with its status, not a broken 200.
 */
export async function firstChunkThenStream(
  source: AsyncIterable<Uint8Array>,
): Promise<ReadableStream<Uint8Array>> {
  const iterator = source[Symbol.asyncIterator]();
  let next: Promise<IteratorResult<Uint8Array>> | undefined = Promise.resolve(await iterator.next());
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await (next ?? iterator.next());
      next = undefined;
      if (done === true) controller.close();
      else controller.enqueue(Uint8Array.from(value));
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}
