/** A file that several workers change: their branches will have to be brought together there. */
export interface Overlap {
  path: string;
  /** By name. */
  workers: readonly string[];
}

const MOST_FILES = 10_000;

/** Adds to what a worker has changed so far. A report may be split over several messages, so none takes anything away. */
export function addChanged(before: ReadonlySet<string>, paths: readonly string[]): ReadonlySet<string> {
  const fresh = paths.filter((path) => !before.has(path)).slice(0, Math.max(0, MOST_FILES - before.size));
  return fresh.length === 0 ? before : new Set([...before, ...fresh]);
}

/** Which files several workers change, by path. */
export function findOverlaps(changed: ReadonlyMap<string, ReadonlySet<string>>): Overlap[] {
  const workersOf = new Map<string, string[]>();
  for (const [worker, paths] of changed) {
    for (const path of paths) {
      const workers = workersOf.get(path);
      if (workers === undefined) workersOf.set(path, [worker]);
      else workers.push(worker);
    }
  }
  return [...workersOf]
    .filter(([, workers]) => workers.length > 1)
    .map(([path, workers]) => ({ path, workers: workers.sort() }))
    .sort((one, other) => (one.path < other.path ? -1 : 1));
}
