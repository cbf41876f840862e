import type { Config } from "../config/config.ts";
import type { CoreAido } from "../core/core-aido.ts";
import type { PeriodicTasks } from "../core/periodic/periodic-tasks.ts";

/** What an operator's settings make a server do about sandboxes that are not used. */
export async function startUpkeep(tasks: PeriodicTasks, aido: CoreAido, config: Config): Promise<void> {
  if (config.reaper.intervalMs > 0) {
    tasks.start({
      name: "sandboxes.reap",
      everyMs: config.reaper.intervalMs,
      isShared: true,
      run: async (signal) => {
        const { failed } = await aido.reaper.reap({ signal });
        const [first] = failed;
        if (first !== undefined)
          throw new Error(`${failed.length} sandboxes cannot be ended: ${first.message}`);
      },
    });
  }
  if (config.gc.intervalMs > 0) {
    tasks.start({
      name: "sandboxes.collect",
      everyMs: config.gc.intervalMs,
      isShared: true,
      run: async (signal) => {
        const { failed } = await aido.gc.collect({ signal });
        const [first] = failed;
        if (first !== undefined)
          throw new Error(`${failed.length} sandboxes cannot be put away: ${first.message}`);
      },
    });
  }
  if (config.workflowSchedule !== "off") {
    const { workflowTick } = await import("./open-workflows.ts");
    const tick = workflowTick(config.workflowSchedule);
    tasks.start({
      name: "workflows.tick",
      everyMs: () => tick(new Date()),
      run: () => aido.workflows.startDue(),
    });
  }
}
