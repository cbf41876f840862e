import type { CreateSandbox, ProfileName } from "@aido/sdk/protocol";

/** What an operator gives sidecar sandboxes that ask for nothing, and the most they can ask for; 0 means no end. */
export interface SidecarLifetimes {
  idleTimeoutMs: number;
  maxIdleTimeoutMs: number;
  ttlMs: number;
  maxTtlMs: number;
}

export const SIDECAR_LIFETIMES: SidecarLifetimes = {
  idleTimeoutMs: 1_800_000,
  maxIdleTimeoutMs: 7_200_000,
  ttlMs: 86_400_000,
  maxTtlMs: 172_800_000,
};

export interface LifetimeDefaults {
  ttlMs?: number | undefined;
  idleTimeoutMs?: number | undefined;
  sidecar?: SidecarLifetimes | undefined;
}

/** How long a new sandbox lives, and how long it may be unused. */
export function lifetimesOf(
  profile: ProfileName,
  request: Pick<CreateSandbox, "ttlMs" | "idleTimeoutMs">,
  defaults: LifetimeDefaults,
): { ttlMs: number; idleTimeoutMs: number } {
  const { ttlMs, idleTimeoutMs } = request;
  if (profile !== "sidecar") {
    return {
      ttlMs: ttlMs ?? defaults.ttlMs ?? 0,
      idleTimeoutMs: idleTimeoutMs ?? defaults.idleTimeoutMs ?? 0,
    };
  }
  const sidecar = defaults.sidecar ?? SIDECAR_LIFETIMES;
  return {
    ttlMs: capped(ttlMs || sidecar.ttlMs, sidecar.maxTtlMs),
    idleTimeoutMs: capped(idleTimeoutMs || sidecar.idleTimeoutMs, sidecar.maxIdleTimeoutMs),
  };
}

function capped(ms: number, most: number): number {
  if (most === 0) return ms;
  return ms === 0 ? most : Math.min(ms, most);
}
