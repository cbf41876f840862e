import { AidoError } from "@aido/sdk/protocol";
import type { ContainerUsage } from "../../core/driver/driver.ts";
import { type CgroupPaths, findCgroup, readCgroupUsage, toUsage } from "./cgroup-usage.ts";
import type { Engine } from "./engine.ts";

/** Reads usage from the kernel where it is visible; an engine's own statistics take half a second and are second. */
export class UsageReader {
  readonly #engine: Engine;
  /** By container id; a container that was started again has groups of its own. */
  readonly #known = new Map<string, CgroupPaths>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  forget(containerId: string): void {
    this.#known.delete(containerId);
  }

  async read(sandboxId: string, containerId: string): Promise<ContainerUsage> {
    const known = this.#known.get(containerId);
    if (known !== undefined) {
      try {
        return await readCgroupUsage(known);
      } catch {
        this.#known.delete(containerId);
      }
    }
    const action = { doing: "reading the sandbox's usage", sandboxId };
    const container = this.#engine.docker.getContainer(containerId);
    const { State } = await this.#engine.call(action, (abortSignal) => container.inspect({ abortSignal }));
    if (!State.Running) throw notRunning(sandboxId);
    const paths = this.#engine.address.local ? await findCgroup(State.Pid) : undefined;
    if (paths !== undefined) {
      try {
        const usage = await readCgroupUsage(paths);
        this.#known.set(containerId, paths);
        return usage;
      } catch {
        // The accounting of this machine is not laid out as expected; the engine knows better.
      }
    }
    return this.#readStatistics(sandboxId, containerId);
  }

  async #readStatistics(sandboxId: string, containerId: string): Promise<ContainerUsage> {
    const container = this.#engine.docker.getContainer(containerId);
    const stats = await this.#engine.call({ doing: "reading the sandbox's usage", sandboxId }, () =>
      container.stats({ stream: false, "one-shot": true }),
    );
    const memory = stats.memory_stats as { usage?: number; stats?: Record<string, number> };
    if (memory.usage === undefined) throw notRunning(sandboxId);
    const inactive = memory.stats?.["total_inactive_file"] ?? memory.stats?.["inactive_file"] ?? 0;
    return toUsage(
      stats.cpu_stats.cpu_usage.total_usage / 1e6,
      memory.usage,
      inactive,
      stats.pids_stats?.current ?? 0,
    );
  }
}

function notRunning(sandboxId: string): AidoError {
  return new AidoError("CONTAINER_NOT_RUNNING", `Sandbox ${sandboxId} is not running`, {
    details: { sandboxId },
  });
}
