import { expect, test } from "vitest";
import { sandboxBed } from "../../test/sandbox/sandbox-bed.ts";
import { loadConfig } from "../config/load-config.ts";
import type { CoreAido } from "../core/core-aido.ts";
import { PeriodicTasks } from "../core/periodic/periodic-tasks.ts";
import { startUpkeep } from "./upkeep.ts";

test("S2-57 S2-62 the reaper and the collector come every SANDBOX_REAPER_INTERVAL and SANDBOX_GC_INTERVAL seconds", async () => {
  const env = { SANDBOX_REAPER_INTERVAL: "30", SANDBOX_GC_INTERVAL: "3600" };
  const { reaped, collected } = await upkeepFor(env, 2 * 3_600_000);
  expect(reaped.slice(0, 3)).toEqual([30_000, 60_000, 90_000]);
  expect(reaped).toHaveLength(240);
  // What goes to the operator's place and what goes to places of users do not wait for each other.
  expect(collected).toEqual([3_600_000, 3_600_000, 7_200_000, 7_200_000]);
});

test("an interval of 0 switches them off", async () => {
  const env = { SANDBOX_REAPER_INTERVAL: "0", SANDBOX_GC_INTERVAL: "0" };
  expect(await upkeepFor(env, 3_600_000)).toEqual({ reaped: [], collected: [] });
});

async function upkeepFor(env: Record<string, string>, ms: number) {
  await using bed = sandboxBed();
  const tasks = new PeriodicTasks({ ...bed.shared, leases: bed.store.leases });
  const begin = bed.clock.now().getTime();
  const [reaped, collected]: [number[], number[]] = [[], []];
  const came = (times: number[]) => async () => {
    times.push(bed.clock.now().getTime() - begin);
    return { failed: [] };
  };
  const aido = { reaper: { reap: came(reaped) }, gc: { collect: came(collected) } } as unknown as CoreAido;
  const { config } = loadConfig({ env: { XDG_CONFIG_HOME: "/nowhere", ...env }, cwd: "/" });
  startUpkeep(tasks, aido, config, {});
  await bed.clock.advance(ms);
  await tasks.stop();
  return { reaped, collected };
}
