import type { ServeConfig } from "../config/config.ts";
import type { ApiKeys } from "../core/access/api-keys.ts";
import type { LimitsOf } from "../core/limits/owner-quotas.ts";

const KEY_OWNER = /^key:(.+)$/;

/** The server's settings, and before them what a key has of its own. */
export function ownerLimits(serve: ServeConfig, keys: Pick<ApiKeys, "get">): LimitsOf {
  return async (owner) => {
    const id = KEY_OWNER.exec(owner)?.[1];
    const own = id === undefined ? undefined : (await keys.get(id))?.limits;
    return {
      sandboxes: own?.maxSandboxes ?? serve.maxSandboxes,
      cpus: own?.maxCpus ?? serve.maxCpus,
      memoryBytes: own?.maxMemoryBytes ?? serve.maxMemoryBytes,
    };
  };
}
