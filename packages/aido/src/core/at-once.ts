/** Does the work for every item, so many at a time. The first failure ends it. */
export async function atOnce<T>(
  count: number,
  items: readonly T[],
  work: (item: T) => Promise<void>,
): Promise<void> {
  const left = items.values();
  const one = async () => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(count, items.length) }, one));
}
