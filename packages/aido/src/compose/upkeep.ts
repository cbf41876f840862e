import type { Config } from "../config/config.ts";
import type { CoreAido } from "../core/core-aido.ts";
import type { PeriodicTasks } from "../core/periodic/periodic-tasks.ts";
import type { Lane } from "../core/tier/deferred-gc.ts";
import type { ReportQos } from "./open-qos.ts";

/** How long to wait for the next look at what workflows are due; undefined when nobody looks. */
export type WorkflowTicks = ((now: Date) => number) | undefined;

/** Raises INVALID_CONFIG. */
export async function workflowTicks({ workflowSchedule }: Config): Promise<WorkflowTicks> {
  if (workflowSchedule === "off") return undefined;
  return (await import("./open-workflows.ts")).workflowTick(workflowSchedule);
}

export interface UpkeepParts {
  readonly ticks?: WorkflowTicks;
  readonly qos?: ReportQos | undefined;
}

/** What an operator's settings make a server do by itself. */
export function startUpkeep(
  tasks: PeriodicTasks,
  aido: CoreAido,
  config: Config,
  { ticks, qos }: UpkeepParts,
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
    const collect = (name: string, only: Lane) =>
      tasks.start({
        name,
        everyMs: config.gc.intervalMs,
        isShared: true,
        run: async (signal) => {
          const { failed } = await aido.gc.collect({ signal, only });
          const [first] = failed;
          if (first !== undefined)
            throw new Error(`${failed.length} sandboxes cannot be put away: ${first.message}`);
        },
      });
    collect("sandboxes.collect", "ours");
    collect("sandboxes.deliver", "theirs");
  }
  if (ticks !== undefined) {
    tasks.start({
      name: "workflows.tick",
      everyMs: () => ticks(new Date()),
      run: () => aido.workflows.startDue(),
    });
  }
  if (qos !== undefined) tasks.start({ name: "qos.report", everyMs: config.qos.intervalMs, run: qos });
}
