import type { Config } from "../config/config.ts";
import type { CoreAido } from "../core/core-aido.ts";
import type { PeriodicTasks } from "../core/periodic/periodic-tasks.ts";

/** How long to wait for the next look at what workflows are due; undefined when nobody looks. */
export type WorkflowTicks = ((now: Date) => number) | undefined;

/** Raises INVALID_CONFIG. */
export async function workflowTicks({ workflowSchedule }: Config): Promise<WorkflowTicks> {
  if (workflowSchedule === "off") return undefined;
  return (await import("./open-workflows.ts")).workflowTick(workflowSchedule);
}

/** What an operator's settings make a server do about sandboxes that are not used. */
export function startUpkeep(
  tasks: PeriodicTasks,
  aido: CoreAido,
  config: Config,
  ticks: WorkflowTicks,
): void {
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
  if (ticks !== undefined) {
    tasks.start({
      name: "workflows.tick",
      everyMs: () => ticks(new Date()),
      run: () => aido.workflows.startDue(),
    });
  }
}
