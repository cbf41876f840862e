import type { SandboxRecord } from "../store/store.ts";

/** Sandboxes with the same key differ only in what can be given to a running one: name, labels, variables, ttl. */
export function poolKey(record: SandboxRecord): string {
  const { profile, image, driver, isolation, workdir, user, network, limits, privileged, history, mounts } =
    record;
  const { cpus, memoryBytes, pids, diskBytes, openFiles, outputBytes, swapBytes = 0 } = limits;
  return JSON.stringify([
    profile,
    image,
    driver,
    isolation,
    workdir,
    user ?? null,
    network,
    [cpus, memoryBytes, pids, diskBytes, openFiles, outputBytes, swapBytes],
    privileged,
    history,
    mounts,
    record.permissions ?? null,
  ]);
}
