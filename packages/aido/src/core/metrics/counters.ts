/** What aido counts for good. Counts live in the store, so that they outlast every process. */
export const COUNTERS = [
  "total_jobs",
  "total_duration_ms",
  "failed_jobs",
  "total_input_tokens",
  "total_output_tokens",
  "reaped_idle",
  "reaped_lifetime",
  "garbage_collected",
  "snapshots_committed",
  "snapshots_uploaded",
  "gc_containers_removed",
  "gc_images_removed",
  "gc_s3_cleaned",
] as const;
export type CounterName = (typeof COUNTERS)[number];

/**
 * What to add to which counter. Whatever changes a record is counted with that change, in one step, by handing it to
 * `transition`, `update` or `remove`: neither a crash nor a change that came too late can then make the count wrong.
 */
export type Counts = Readonly<Partial<Record<CounterName, number>>>;

export interface CounterStore {
  /** All or none. For what changes no record; see `Counts`. */
  add(counts: Counts): Promise<void>;
  /** 0 for what was never counted. */
  read(): Promise<Readonly<Record<CounterName, number>>>;
}

/** What running sandboxes may use together, and the most that ever ran at once. */
export interface SandboxTotals {
  active: number;
  peak: number;
  cpus: number;
  memoryBytes: number;
}
