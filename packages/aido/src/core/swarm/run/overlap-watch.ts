import { addChanged } from "../merge/overlaps.ts";

/** Past these there is nothing new to learn from another one. */
const MOST_TOLD = 500;

/** Tells each pair of workers that changes the same file, once for each file. */
export class OverlapWatch {
  readonly #changed = new Map<string, ReadonlySet<string>>();
  #told = 0;

  /** What was known before: nothing is told about it again. */
  know(worker: string, paths: readonly string[]): void {
    this.#changed.set(worker, addChanged(new Set(), paths));
  }

  /** What is to be said about paths that a worker has touched now. */
  add(worker: string, paths: readonly string[]): string[] {
    const before = this.#changed.get(worker) ?? new Set<string>();
    const after = addChanged(before, paths);
    this.#changed.set(worker, after);
    const said: string[] = [];
    for (const path of new Set(paths)) {
      if (before.has(path) || !after.has(path)) continue;
      for (const [other, touched] of this.#changed) {
        if (other === worker || !touched.has(path)) continue;
        this.#told += 1;
        if (this.#told > MOST_TOLD) return said;
        said.push(`${worker} and ${other} both change ${path}`);
      }
    }
    return said;
  }
}
