import type { Aido } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import type { Principal } from "./auth/principal.ts";
import { ownerLabels } from "./ownership.ts";

/** Raises QUOTA_EXCEEDED when the caller has as many sandboxes as it may have. */
export type Quota = (principal: Principal) => Promise<void>;

/** 0 means no limit. */
export function sandboxQuota(aido: Aido, most: number): Quota {
  return async (principal) => {
    if (most === 0) return;
    const filter = {
      labels: ownerLabels(principal),
      states: ["pending", "running", "stopped"] as const,
      limit: most,
    };
    const own = await aido.sandboxes.list(filter);
    if (own.length < most) return;
    throw new AidoError("QUOTA_EXCEEDED", `You have ${own.length} sandboxes, which is all you may have`, {
      hint: "Delete one, or ask for a higher quota.",
      details: { limit: most },
    });
  };
}
