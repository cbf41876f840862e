/** Does the work for 0 to `count - 1`, at most `atOnce` at a time; the results come in the order of the numbers. */
export async function inOrder<Result>(
  count: number,
  atOnce: number,
  work: (position: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  let next = 0;
  const take = async (): Promise<void> => {
    for (let position = next++; position < count; position = next++) results[position] = await work(position);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, take));
  return results;
}
