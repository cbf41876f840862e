import { monitorEventLoopDelay } from "node:perf_hooks";
import { isGauge } from "../core/metrics/read-metrics.ts";

const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

interface Histogram {
  counts: number[];
  sum: number;
  total: number;
}

/** What Prometheus reads at /metrics. Label values come from our own tables, so their number is bounded. */
export class HttpMetrics {
  readonly #requests = new Map<string, number>();
  readonly #errors = new Map<string, number>();
  readonly #durations = new Map<string, Histogram>();
  readonly #delay = monitorEventLoopDelay({ resolution: 20 });
  readonly #gauges: () => Promise<Readonly<Record<string, number>>>;
  readonly #counted: () => Promise<Readonly<Record<string, number>>>;

  /**
   * `gauges` gives what is counted when asked for: sandboxes by state, the pool. Names may carry labels. `counted` gives
   * what the store has counted for good.
   */
  constructor(
    gauges: () => Promise<Readonly<Record<string, number>>>,
    counted: () => Promise<Readonly<Record<string, number>>>,
  ) {
    this.#gauges = gauges;
    this.#counted = counted;
    this.#delay.enable();
  }

  request(operation: string, status: number, durationMs: number, code: string | undefined): void {
    add(this.#requests, `operation="${operation}",status="${status}"`);
    if (code !== undefined) add(this.#errors, `code="${code}"`);
    const histogram = this.#durations.get(operation) ?? {
      counts: BUCKETS_SECONDS.map(() => 0),
      sum: 0,
      total: 0,
    };
    this.#durations.set(operation, histogram);
    const seconds = durationMs / 1000;
    for (const [index, bound] of BUCKETS_SECONDS.entries()) {
      if (seconds <= bound) histogram.counts[index] = (histogram.counts[index] ?? 0) + 1;
    }
    histogram.sum += seconds;
    histogram.total += 1;
  }

  /** Jobs, sandboxes, sessions, reaper and garbage collection, by name. */
  counted(): Promise<Readonly<Record<string, number>>> {
    return this.#counted();
  }

  async render(): Promise<string> {
    const lines: string[] = [];
    counters(lines, "aido_http_requests_total", "Requests by operation and status", this.#requests);
    counters(lines, "aido_errors_total", "Errors by code", this.#errors);
    const name = "aido_http_request_duration_seconds";
    lines.push(`# HELP ${name} Time to the reply`, `# TYPE ${name} histogram`);
    for (const [operation, histogram] of this.#durations) {
      const label = `operation="${operation}"`;
      for (const [index, bound] of BUCKETS_SECONDS.entries()) {
        lines.push(`${name}_bucket{${label},le="${bound}"} ${histogram.counts[index]}`);
      }
      lines.push(`${name}_bucket{${label},le="+Inf"} ${histogram.total}`);
      lines.push(`${name}_sum{${label}} ${histogram.sum}`, `${name}_count{${label}} ${histogram.total}`);
    }
    for (const [counter, value] of Object.entries(await this.#counted())) {
      lines.push(`# TYPE ${counter} ${isGauge(counter) ? "gauge" : "counter"}`, `${counter} ${value}`);
    }
    for (const [gauge, value] of Object.entries(await this.#gauges())) lines.push(`${gauge} ${value}`);
    lines.push("# HELP aido_event_loop_lag_seconds 99th percentile since the last reading");
    lines.push("# TYPE aido_event_loop_lag_seconds gauge");
    lines.push(`aido_event_loop_lag_seconds ${this.#delay.percentile(99) / 1e9}`);
    this.#delay.reset();
    return `${lines.join("\n")}\n`;
  }

  close(): void {
    this.#delay.disable();
  }
}

function add(map: Map<string, number>, key: string): void {
  map.set(key, (map.get(key) ?? 0) + 1);
}

function counters(lines: string[], name: string, help: string, values: ReadonlyMap<string, number>): void {
  lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} counter`);
  for (const [labels, value] of values) lines.push(`${name}{${labels}} ${value}`);
}
