import { type OpenOptions, openAido } from "../compose.ts";
import type { Workers } from "../core/swarm/workers/workers.ts";

export interface SwarmWorkers extends AsyncDisposable {
  readonly workers: Workers;
}

/** Workers on a Docker engine, whatever other sandboxes run on. Closing lets go of them; they run on. */
export async function openSwarmWorkers(options: OpenOptions): Promise<SwarmWorkers> {
  const config = { ...options.config, driver: "docker" } as const;
  const aido = await openAido({ ...options, config });
  try {
    const workers = await aido.openWorkers();
    return { workers, [Symbol.asyncDispose]: () => aido.close() };
  } catch (thrown) {
    await aido.close();
    throw thrown;
  }
}
