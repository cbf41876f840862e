/** Observations by upper bound, as Prometheus wants them. */
export class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;
  #total = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  observe(value: number): void {
    for (const [index, bound] of this.#bounds.entries()) {
      if (value <= bound) this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    }
    this.#sum += value;
    this.#total += 1;
  }

  /** `labels` as in `operation="exec"`, or empty. */
  lines(name: string, labels = ""): string[] {
    const before = labels === "" ? "" : `${labels},`;
    const own = labels === "" ? "" : `{${labels}}`;
    const buckets = this.#bounds.map(
      (bound, index) => `${name}_bucket{${before}le="${bound}"} ${this.#counts[index]}`,
    );
    return [
      ...buckets,
      `${name}_bucket{${before}le="+Inf"} ${this.#total}`,
      `${name}_sum${own} ${this.#sum}`,
      `${name}_count${own} ${this.#total}`,
    ];
  }
}
