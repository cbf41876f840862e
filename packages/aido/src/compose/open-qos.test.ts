import { isAidoError } from "@aido/sdk/protocol";
import { describe, expect, test } from "vitest";
import { HandClock } from "../../test/exec/hand-clock.ts";
import { ApiBed } from "../../test/server/api-bed.ts";
import { FAKE_SHELL } from "../../test/server/fake-shell.ts";
import { loadConfig } from "../config/load-config.ts";
import type { CoreAido } from "../core/core-aido.ts";
import { type QosSnapshot, reportQos } from "../core/metrics/qos-report.ts";
import type { Metrics } from "../core/metrics/read-metrics.ts";
import { PeriodicTasks } from "../core/periodic/periodic-tasks.ts";
import { StreamLogger } from "../log/stream-logger.ts";
import { MemoryLeases } from "../stores/memory/memory-leases.ts";
import { checkQos, openQos } from "./open-qos.ts";
import { startUpkeep } from "./upkeep.ts";

const MINUTE = 60_000;
const configOf = (env: Record<string, string>) =>
  loadConfig({
    env: { XDG_CONFIG_HOME: "/nowhere", SANDBOX_REAPER_INTERVAL: "0", SANDBOX_GC_INTERVAL: "0", ...env },
    cwd: "/",
  }).config;

/** A server's upkeep with a clock that is moved by hand, and what it logs. */
function bed(env: Record<string, string>, metrics: () => Promise<Metrics>) {
  const clock = new HandClock();
  // biome-ignore lint/suspicious/noExplicitAny: an entry of the log has whatever fields it has
  const logged: any[] = [];
  const logger = new StreamLogger({
    level: "info",
    format: "json",
    write: (line) => logged.push(JSON.parse(line)),
    now: () => clock.now(),
  });
  const config = configOf(env);
  const tasks = new PeriodicTasks({ leases: new MemoryLeases(), clock, logger });
  startUpkeep(tasks, {} as CoreAido, config, { qos: openQos(config, { metrics, logger, clock }) });
  return { clock, tasks, logged };
}

describe("reports of QoS", () => {
  test("S2-83 S2-125 S2-126 S2-132 a dry run writes every counter to the log at each interval, after what was counted", async () => {
    await using api = await ApiBed.open({ programs: FAKE_SHELL });
    const env = {
      QOS_ENABLED: "true",
      QOS_DRY_RUN: "true",
      SERVICE_ID: "7",
      BLUEPRINT_ID: "18446744073709551615",
    };
    const { clock, tasks, logged } = bed(env, () => api.aido.metrics());
    const { sandboxId, token } = (await api.post("/api/jobs/0", {})).json;
    const exec = { sidecar_url: sandboxId, sidecar_token: token, command: "echo hi" };
    await clock.advance(MINUTE - 1);
    expect(logged).toEqual([]);
    await clock.advance(1);
    await expect.poll(() => logged.length, { timeout: 10_000 }).toBe(1);
    await api.post("/api/jobs/10", exec);
    await clock.advance(MINUTE);
    await expect.poll(() => logged.length, { timeout: 10_000 }).toBe(2);
    await tasks.stop();
    await clock.advance(10 * MINUTE);
    expect(logged).toHaveLength(2);
    expect(logged[1]).toMatchObject({
      level: "info",
      event: "qos.snapshot",
      at: "2026-01-01T00:02:00.000Z",
      serviceId: "7",
      blueprintId: "18446744073709551615",
    });
    const { total_duration_ms, ...counted } = await api.aido.metrics();
    const values = Object.fromEntries(
      logged[1].metrics.map((one: { name: string; value: number }) => [one.name, one.value]),
    );
    expect(values).toEqual({ ...counted, avg_duration_ms: Math.round(total_duration_ms / 2) });
    expect(values).toMatchObject({ total_jobs: 2, active_sandboxes: 1, total_input_tokens: 0 });
    expect(logged[0].metrics).toContainEqual({ name: "total_jobs", value: 1 });
  });

  test("S2-124 S2-132 nothing is reported unless it is asked for", async () => {
    const { clock, tasks, logged } = bed({ QOS_DRY_RUN: "true", SERVICE_ID: "some-service" }, never);
    await clock.advance(60 * MINUTE);
    await tasks.stop();
    expect(logged).toEqual([]);
  });

  test("S2-126 S2-127 S2-128 without a dry run a server is refused: it says what is missing, and what to type", () => {
    const refused = refusal({ QOS_ENABLED: "true" });
    expect(refused.message).toBe(
      "QOS_ENABLED is true, but this version of aido has no chain runner to submit metrics with; SERVICE_ID is not set; BLUEPRINT_ID is not set",
    );
    expect(refused.hint).toContain("QOS_DRY_RUN=true");
    const ids = { SERVICE_ID: "7", BLUEPRINT_ID: "0" };
    expect(refusal({ QOS_ENABLED: "true", ...ids }).details["problems"]).toEqual([
      "this version of aido has no chain runner to submit metrics with",
    ]);
    const dry = { QOS_ENABLED: "true", QOS_DRY_RUN: "true" };
    expect(() => checkQos(configOf(dry))).not.toThrow();
    expect(() => checkQos(configOf({}))).not.toThrow();
    const odd = {
      ...dry,
      SERVICE_ID: "seven",
      BLUEPRINT_ID: "18446744073709551616",
      QOS_METRICS_INTERVAL_SECS: "0",
    };
    expect(refusal(odd).details["problems"]).toEqual([
      "QOS_METRICS_INTERVAL_SECS is 0",
      'SERVICE_ID must be a whole number of at most 18446744073709551615, not "seven"',
      'BLUEPRINT_ID must be a whole number of at most 18446744073709551615, not "18446744073709551616"',
    ]);
  });

  test("S2-83 one report at a time: the next waits for it, a failure is said once, and a shutdown ends it", async () => {
    const clock = new HandClock();
    const warnings: object[] = [];
    const ignore = () => undefined;
    const logger = {
      debug: ignore,
      info: ignore,
      warn: (fields: object) => warnings.push(fields),
      error: ignore,
    };
    const tasks = new PeriodicTasks({
      leases: new MemoryLeases(),
      clock,
      logger: { ...logger, child: never },
    });
    const begun: { snapshot: QosSnapshot; signal: AbortSignal; fail: (error: Error) => void }[] = [];
    const submitter = {
      submit: (snapshot: QosSnapshot, signal: AbortSignal) =>
        new Promise<void>((_, reject) => {
          begun.push({ snapshot, signal, fail: reject });
        }),
    };
    const metrics = async () => ({ total_jobs: 0, total_duration_ms: 0 }) as Metrics;
    const qos = (signal: AbortSignal) =>
      reportQos({ metrics, submitter, clock, serviceId: undefined, blueprintId: undefined }, signal);
    startUpkeep(tasks, {} as CoreAido, configOf({ QOS_METRICS_INTERVAL_SECS: "5" }), { qos });
    await clock.advance(50_000);
    expect(begun).toHaveLength(1);
    expect(begun[0]?.snapshot.metrics).toContainEqual({ name: "avg_duration_ms", value: 0 });
    // One that never answers is given up after a minute.
    await clock.advance(15_000);
    expect(begun[0]?.signal.aborted).toBe(true);
    expect(warnings).toMatchObject([{ event: "qos.report", message: expect.stringContaining("60000 ms") }]);
    await clock.advance(5_000);
    expect(begun).toHaveLength(2);
    begun[1]?.fail(new Error("down"));
    await clock.advance(5_000);
    expect(begun).toHaveLength(3);
    expect(warnings).toHaveLength(2);
    await tasks.stop();
    expect(begun[2]?.signal.aborted).toBe(true);
    expect(warnings).toHaveLength(2);
  });
});

function never(): never {
  throw new Error("not to be called");
}

function refusal(env: Record<string, string>) {
  try {
    checkQos(configOf(env));
  } catch (thrown) {
    if (isAidoError(thrown, "INVALID_CONFIG")) return thrown;
    throw thrown;
  }
  throw new Error("nothing was refused");
}
