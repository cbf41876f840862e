import type { SandboxInfo } from "@aido/sdk/protocol";
import type { PublicAddress } from "../access/public-address.ts";
import type { SandboxRecord } from "../store/store.ts";
import { WORKSPACE_LABEL } from "../workspace/workspace-holds.ts";

/** What front ends see of a record: no token, no environment, no mounts. */
export function toSandboxInfo(record: SandboxRecord, address: PublicAddress | undefined): SandboxInfo {
  return {
    id: record.id,
    name: record.name,
    profile: record.profile,
    image: record.image,
    driver: record.driver,
    isolation: record.isolation,
    state: record.state,
    endReason: record.endReason,
    containerId: record.containerId,
    workdir: record.workdir,
    network: record.network,
    limits: record.limits,
    labels: record.labels,
    createdAt: record.createdAt,
    startedAt: record.startedAt,
    // While it runs, that somebody is at stopping it.
    stoppedAt: record.state === "running" ? undefined : record.stoppedAt,
    expiresAt: record.expiresAt,
    idleTimeoutMs: record.idleTimeoutMs,
    autoResume: record.autoResume,
    lastActivityAt: record.lastActivityAt,
    sidecarUrl: record.tokenHash === undefined ? undefined : address?.sidecar(record.id),
    tier: record.tier,
    tierSince: record.tierSince,
    workspace: record.labels[WORKSPACE_LABEL],
  };
}
