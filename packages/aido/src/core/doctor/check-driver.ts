import { ISOLATIONS } from "@aido/sdk/protocol";
import type { DriverCapabilities } from "../driver/driver.ts";
import { type Finding, ok, warning } from "./finding.ts";

const LIMITS = { cpus: "processor time", memory: "memory", pids: "processes", disk: "disk" } as const;

/** What a driver says of itself, as findings. */
export function checkDriver(capabilities: DriverCapabilities): Finding[] {
  const { version, isolations, networks, enforced, warnings } = capabilities;
  const missing = ISOLATIONS.filter((isolation) => !isolations.includes(isolation));
  const names = Object.entries(LIMITS) as [keyof typeof LIMITS, string][];
  const held = names.filter(([limit]) => enforced[limit]).map(([, name]) => name);
  const loose = names.filter(([limit]) => !enforced[limit]).map(([, name]) => name);
  const limits = held.length === 0 ? "no limit is enforced" : `enforced: ${held.join(", ")}`;
  return [
    ok("driver", version),
    ok(
      "isolation",
      `${isolations.join(", ")}${missing.length === 0 ? "" : ` (not on this machine: ${missing.join(", ")})`}`,
    ),
    ok("networks", networks.join(", ")),
    // Disk use is watched by aido itself where the backend has no quota.
    loose.some((name) => name !== LIMITS.disk)
      ? warning("limits", `${limits}; not enforced: ${loose.join(", ")}`)
      : ok("limits", `${limits}${loose.length === 0 ? "" : "; disk is watched"}`),
    ...warnings.map((text) => warning("driver", text)),
  ];
}
