import { ClockJumps } from "../../src/core/clock-jumps.ts";
import type { ProcessIdentity } from "../../src/core/process-identity.ts";
import { ProcessPresence } from "../../src/core/process-presence.ts";
import type { LeaseStore } from "../../src/core/store/store.ts";
import type { HandClock } from "../exec/hand-clock.ts";

/** How the process `self` sees others: some are known to be dead, of the rest nothing is known. */
export function fakeIdentity(self: string, dead: ReadonlySet<string> = new Set()): ProcessIdentity {
  const name = (holder: string) => holder.split("#")[0] ?? "";
  return {
    self,
    isDead: (holder) => dead.has(name(holder)),
    isAlive: (holder) => name(holder) === self,
  };
}

/** A process in a boot of its own: the others know of it by its lease alone. */
export function fakePresence(
  self: string,
  { leases, clock, dead }: { leases: LeaseStore; clock: HandClock; dead?: ReadonlySet<string> },
): ProcessPresence {
  const jumps = new ClockJumps(clock, () => clock.passedMs());
  return new ProcessPresence({ processes: fakeIdentity(self, dead), leases, clock, jumps });
}
