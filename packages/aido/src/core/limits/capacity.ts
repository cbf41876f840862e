import { AidoError } from "@aido/sdk/protocol";
import type { SandboxStore } from "../store/store.ts";
import { type Amounts, AtMost } from "./at-most.ts";

/** Brings one more sandbox up, or raises QUOTA_EXCEEDED when as many run as an operator has room for. */
export type Capacity = <Started>(start: () => Promise<Started>) => Promise<Started>;

/** Counts what runs on the store, whoever has started it. Undefined means no limit. */
export function capacityOf(
  sandboxes: Pick<SandboxStore, "totals">,
  reconcile: () => Promise<void>,
  most: number | undefined,
): Capacity {
  if (most === undefined) return (start) => start();
  const used = async () => {
    const { active } = await sandboxes.totals();
    if (active < most) return { active };
    // Before anybody is sent away: some may have ended unseen.
    await reconcile();
    return { active: (await sandboxes.totals()).active };
  };
  const refusal = ({ active }: Amounts<"active">) => (active < most ? undefined : isFull(most));
  const limit = new AtMost<"active">();
  return (start) => limit.make({ active: 1 }, { used, refusal }, start);
}

function isFull(most: number): AidoError {
  return new AidoError("QUOTA_EXCEEDED", `${most} sandboxes run here, which is all there is room for`, {
    hint: "Stop or delete one; whoever runs this machine sets how many with OPERATOR_MAX_CAPACITY.",
    details: { limit: most },
  });
}
