import { AidoError } from "@aido/sdk/protocol";
import type { Config, QosConfig } from "../config/config.ts";
import { uint64 } from "../config/value-kinds.ts";
import type { Clock } from "../core/clock.ts";
import type { Logger } from "../core/logger.ts";
import { LogSubmitter } from "../core/metrics/qos-log-submitter.ts";
import { reportQos } from "../core/metrics/qos-report.ts";
import type { Metrics } from "../core/metrics/read-metrics.ts";

export interface QosParts {
  readonly metrics: () => Promise<Metrics>;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** Makes one report. */
export type ReportQos = (signal: AbortSignal) => Promise<void>;

/** Undefined when nothing is reported. Raises what `checkQos` does. */
export function openQos({ qos }: Pick<Config, "qos">, parts: QosParts): ReportQos | undefined {
  if (!qos.enabled) return undefined;
  checkQos({ qos });
  const submitter = new LogSubmitter(parts.logger);
  const { serviceId, blueprintId } = qos;
  return (signal) => reportQos({ ...parts, submitter, serviceId, blueprintId }, signal);
}

/** Raises INVALID_CONFIG with everything that keeps reports from being made as they are asked for. */
export function checkQos({ qos }: Pick<Config, "qos">): void {
  if (!qos.enabled) return;
  const problems = problemsOf(qos);
  if (problems.length === 0) return;
  const hint = qos.dryRun
    ? "docs/reference/config.md describes the settings of QoS."
    : "QOS_DRY_RUN=true writes the metrics to the log in place of submitting them; QOS_ENABLED=false reports nothing.";
  throw new AidoError("INVALID_CONFIG", `QOS_ENABLED is true, but ${problems.join("; ")}`, {
    hint,
    details: { problems },
  });
}

function problemsOf({ dryRun, intervalMs, serviceId, blueprintId }: QosConfig): string[] {
  const problems: string[] = [];
  if (!dryRun) problems.push("this version of aido has no chain runner to submit metrics with");
  if (intervalMs === 0) problems.push("QOS_METRICS_INTERVAL_SECS is 0");
  for (const [name, id] of [
    ["SERVICE_ID", serviceId],
    ["BLUEPRINT_ID", blueprintId],
  ] as const) {
    if (id === undefined) {
      if (!dryRun) problems.push(`${name} is not set`);
    } else if (uint64.read(id) === undefined) {
      problems.push(`${name} must be ${uint64.what}, not ${JSON.stringify(id.slice(0, 100))}`);
    }
  }
  return problems;
}
