/**
 * Whether the items fit the parts one after another, where some parts stand for any number of items. Only the last
 * of those is ever tried again, so hostile items and parts cost their product at most, and no memory.
 */
export function fitsInOrder<Part, Item>(
  parts: readonly Part[],
  items: readonly Item[],
  how: { isMany: (part: Part) => boolean; fits: (part: Part, item: Item) => boolean },
): boolean {
  let at = 0;
  let retry: { part: number; item: number } | undefined;
  for (let i = 0; i < items.length; ) {
    const part = parts[at];
    if (part !== undefined && how.isMany(part)) {
      retry = { part: ++at, item: i };
    } else if (part !== undefined && how.fits(part, items[i] as Item)) {
      at++;
      i++;
    } else if (retry !== undefined) {
      at = retry.part;
      i = ++retry.item;
    } else {
      return false;
    }
  }
  return parts.slice(at).every(how.isMany);
}
