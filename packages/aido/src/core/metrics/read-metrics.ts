import type { Activity } from "../activity/activity.ts";
import type { Store } from "../store/store.ts";
import type { CounterName } from "./counters.ts";

const GAUGES = [
  "active_sandboxes",
  "peak_sandboxes",
  "allocated_cpu_cores",
  "allocated_memory_mb",
  "active_sessions",
] as const;
const MIB = 1024 * 1024;

export type MetricName = CounterName | (typeof GAUGES)[number];
export type Metrics = Readonly<Record<MetricName, number>>;

/** Goes up and down; every other metric is a counter. */
export function isGauge(name: string): boolean {
  return GAUGES.some((gauge) => gauge === name);
}

/** Counters as the store has them, gauges from the records themselves: both are right after any crash. */
export async function readMetrics(
  store: Pick<Store, "counters" | "sandboxes">,
  activity: Pick<Activity, "count">,
): Promise<Metrics> {
  const [counters, totals] = await Promise.all([store.counters.read(), store.sandboxes.totals()]);
  return {
    ...counters,
    active_sandboxes: totals.active,
    peak_sandboxes: totals.peak,
    allocated_cpu_cores: totals.cpus,
    allocated_memory_mb: Math.round(totals.memoryBytes / MIB),
    // Guards of this process: whatever ends it ends them too.
    active_sessions: activity.count("session"),
  };
}
