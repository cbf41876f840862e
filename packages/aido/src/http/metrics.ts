import { monitorEventLoopDelay } from "node:perf_hooks";
import { isGauge } from "../core/metrics/read-metrics.ts";
import { Histogram } from "./histogram.ts";

const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
/** Commands take from milliseconds to hours. */
const EXEC_BUCKETS_SECONDS = [0.005, 0.025, 0.1, 0.25, 1, 2.5, 10, 30, 60, 300, 1800, 3600];

/** What Prometheus reads at /metrics. Label values come from our own tables, so their number is bounded. */
export class HttpMetrics {
  readonly #requests = new Map<string, number>();
  readonly #errors = new Map<string, number>();
  readonly #durations = new Map<string, Histogram>();
  readonly #execs = new Map<string, number>();
  readonly #execDurations = new Histogram(EXEC_BUCKETS_SECONDS);
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
    const histogram = this.#durations.get(operation) ?? new Histogram(BUCKETS_SECONDS);
    this.#durations.set(operation, histogram);
    histogram.observe(durationMs / 1000);
  }

  execEnded(status: string, durationMs: number): void {
    add(this.#execs, `status="${status}"`);
    this.#execDurations.observe(durationMs / 1000);
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
      lines.push(...histogram.lines(name, `operation="${operation}"`));
    }
    counters(lines, "aido_execs_total", "Commands that have ended, by how", this.#execs);
    const execs = "aido_exec_duration_seconds";
    lines.push(`# HELP ${execs} From a command's start to its end`, `# TYPE ${execs} histogram`);
    lines.push(...this.#execDurations.lines(execs));
    for (const [counter, value] of Object.entries(await this.#counted())) {
      lines.push(`# TYPE ${counter} ${isGauge(counter) ? "gauge" : "counter"}`, `${counter} ${value}`);
    }
    lines.push(...gaugeLines(await this.#gauges()));
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

/** All lines of one name follow its type, whatever order they came in. */
function gaugeLines(gauges: Readonly<Record<string, number>>): string[] {
  const byName = new Map<string, string[]>();
  for (const [labelled, value] of Object.entries(gauges)) {
    const name = labelled.split("{", 1)[0] ?? labelled;
    byName.set(name, [...(byName.get(name) ?? []), `${labelled} ${value}`]);
  }
  return [...byName].flatMap(([name, lines]) => [
    `# TYPE ${name} ${name.endsWith("_total") ? "counter" : "gauge"}`,
    ...lines,
  ]);
}
