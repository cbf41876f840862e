import type { Clock } from "../clock.ts";
import { withTimeLimit } from "../supervisor/time-limit.ts";
import type { MetricName, Metrics } from "./read-metrics.ts";

/** Every metric by its name, except that the time of jobs is an average in place of a sum. */
export type QosMetricName = Exclude<MetricName, "total_duration_ms"> | "avg_duration_ms";

export interface QosSnapshot {
  readonly at: Date;
  /** What is reported for. Text, because such a number may have 64 bits. */
  readonly serviceId: string | undefined;
  readonly blueprintId: string | undefined;
  readonly metrics: readonly { readonly name: QosMetricName; readonly value: number }[];
}

/** Where snapshots go. */
export interface QosSubmitter {
  /** Resolves when the snapshot has arrived; must give up soon when the signal is aborted. */
  submit(snapshot: QosSnapshot, signal: AbortSignal): Promise<void>;
}

export interface QosReportDeps extends Pick<QosSnapshot, "serviceId" | "blueprintId"> {
  readonly metrics: () => Promise<Metrics>;
  readonly submitter: QosSubmitter;
  readonly clock: Clock;
}

const SUBMIT_LIMIT_MS = 60_000;

/** Submits the counters as they are. One that does not arrive is made good by the next: they are sums since the beginning. */
export async function reportQos(deps: QosReportDeps, signal: AbortSignal): Promise<void> {
  const { metrics, submitter, clock, serviceId, blueprintId } = deps;
  const snapshot = { at: clock.now(), serviceId, blueprintId, metrics: toQosMetrics(await metrics()) };
  const limit = { clock, limitMs: SUBMIT_LIMIT_MS, what: "Submitting QoS metrics", signal };
  try {
    await withTimeLimit(limit, (ended) => submitter.submit(snapshot, ended));
  } catch (thrown) {
    // A server that shuts down is no failure.
    if (!signal.aborted) throw thrown;
  }
}

export function toQosMetrics({ total_duration_ms, ...metrics }: Metrics): QosSnapshot["metrics"] {
  const { total_jobs } = metrics;
  const avg_duration_ms = total_jobs === 0 ? 0 : Math.round(total_duration_ms / total_jobs);
  const all: Readonly<Record<QosMetricName, number>> = { ...metrics, avg_duration_ms };
  return Object.entries(all).map(([name, value]) => ({ name: name as QosMetricName, value }));
}
