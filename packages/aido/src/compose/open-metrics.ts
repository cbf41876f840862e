import type { CoreAido } from "../core/core-aido.ts";
import type { WarmPool } from "../core/pool/warm-pool.ts";
import { HttpMetrics } from "../http/metrics.ts";
import type { SqliteStore } from "../stores/sqlite/sqlite-store.ts";

/** Numbers about requests, commands, sandboxes and the pool, which may be opened later. */
export function openMetrics(
  aido: CoreAido,
  store: SqliteStore,
  pool: () => WarmPool | undefined,
): HttpMetrics {
  const gauges = async () => ({
    ...(await sandboxGauges(store)),
    aido_execs_running: await store.execs.countRunning(),
    ...poolGauges(pool()),
  });
  const metrics = new HttpMetrics(gauges, () => aido.metrics());
  aido.execs.onEnded(({ status, startedAt, endedAt = startedAt }) => {
    metrics.execEnded(status, endedAt.getTime() - startedAt.getTime());
  });
  return metrics;
}

function poolGauges(pool: WarmPool | undefined): Readonly<Record<string, number>> {
  const gauges: Record<string, number> = {};
  const add = (name: string, value: number) => {
    gauges[name] = (gauges[name] ?? 0) + value;
  };
  for (const { image, isolation, ready, target, hits, misses } of pool?.state() ?? []) {
    const label = `image="${image}",isolation="${isolation}"`;
    add(`aido_pool_ready{${label}}`, ready);
    add(`aido_pool_target{${label}}`, target);
    add(`aido_pool_claims_total{${label},result="hit"}`, hits);
    add(`aido_pool_claims_total{${label},result="miss"}`, misses);
  }
  return gauges;
}

async function sandboxGauges(store: SqliteStore): Promise<Readonly<Record<string, number>>> {
  const counts = await store.sandboxes.countByState();
  return Object.fromEntries(
    Object.entries(counts).map(([state, count]) => [`aido_sandboxes{state="${state}"}`, count]),
  );
}
