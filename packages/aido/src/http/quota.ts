import type { Aido } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import type { Principal } from "./auth/principal.ts";
import { ownerLabels } from "./ownership.ts";

/** Makes a sandbox, or raises QUOTA_EXCEEDED when the caller has as many as it may have. */
export type Quota = <Made>(principal: Pick<Principal, "owner">, make: () => Promise<Made>) => Promise<Made>;

/** What one owner is at: sandboxes being made, and how many times one was done. */
interface Making {
  readonly at: Set<Promise<unknown>>;
  done: number;
  users: number;
}

/** 0 means no limit. Requests that come at once cannot get more together than one after the other. */
export function sandboxQuota(aido: Pick<Aido, "sandboxes">, most: number): Quota {
  const all = new Map<string, Making>();
  return async (principal, make) => {
    if (most === 0) return make();
    const making = all.get(principal.owner) ?? { at: new Set(), done: 0, users: 0 };
    all.set(principal.owner, making);
    making.users += 1;
    try {
      for (;;) {
        const { done } = making;
        const listed = await count(aido, principal, most);
        // One that was done meanwhile is perhaps not in the list.
        if (making.done !== done) continue;
        // No await from here on: whoever comes next must see this one.
        if (listed + making.at.size < most) return await tracked(making, make());
        if (making.at.size === 0) throw exceeded(most);
        // Being made and already listed counts twice, so near the limit it is waited for and counted again.
        await Promise.allSettled(making.at);
      }
    } finally {
      making.users -= 1;
      if (making.users === 0) all.delete(principal.owner);
    }
  };
}

function tracked<Made>(making: Making, work: Promise<Made>): Promise<Made> {
  const made = work.finally(() => {
    making.done += 1;
    making.at.delete(made);
  });
  making.at.add(made);
  return made;
}

async function count(
  aido: Pick<Aido, "sandboxes">,
  principal: Pick<Principal, "owner">,
  most: number,
): Promise<number> {
  const states = ["pending", "running", "stopped"] as const;
  return (await aido.sandboxes.list({ labels: ownerLabels(principal), states, limit: most })).length;
}

function exceeded(most: number): AidoError {
  return new AidoError("QUOTA_EXCEEDED", `You have ${most} sandboxes, which is all you may have`, {
    hint: "Delete one, or ask for a higher quota.",
    details: { limit: most },
  });
}
