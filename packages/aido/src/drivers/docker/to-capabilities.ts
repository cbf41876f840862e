import type { DriverCapabilities } from "../../core/driver/driver.ts";
import type { EngineInfo } from "./engine-info.ts";
import { availableIsolations, INSTALL, offlineIsolations } from "./runtimes.ts";

export function toCapabilities(
  info: EngineInfo,
  extra: { hasBridge: boolean; local: boolean },
): DriverCapabilities {
  const { cpus, memory, swap, pids, disk } = info.enforces;
  const warnings = [
    cpus ? undefined : "This kernel has no CPU quotas: a sandbox may use every processor.",
    memory ? undefined : "This kernel has no memory control group: memory limits are not enforced.",
    memory && !swap
      ? "This kernel does not account for swap: a sandbox may use swap beyond its memory limit."
      : undefined,
    pids ? undefined : "This kernel cannot limit the number of processes.",
    disk ? undefined : "The engine's storage has no quotas: disk limits are watched, not enforced.",
    info.hasSeccomp ? undefined : "The engine runs without seccomp: sandboxes may use every system call.",
    extra.hasBridge
      ? undefined
      : "The engine has no bridge network: sandboxes have no network or the host's.",
    extra.local ? undefined : "The engine is on another machine: directories of this one cannot be mounted.",
  ];
  return {
    version: `Docker Engine ${info.version}`,
    isolations: availableIsolations(info.runtimes),
    offline: offlineIsolations(info),
    install: INSTALL,
    networks: extra.hasBridge ? ["none", "bridge", "host"] : ["none", "host"],
    enforced: { cpus, memory, pids, disk },
    users: true,
    images: true,
    privileged: true,
    warnings: warnings.filter((warning) => warning !== undefined),
  };
}
