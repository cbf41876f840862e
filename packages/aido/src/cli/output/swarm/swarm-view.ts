import type { SwarmEvent } from "../../../core/swarm/swarm-event.ts";

/** What people, or programs, see of a swarm that runs. */
export interface SwarmView {
  /** Never waits and never throws. */
  readonly show: (event: SwarmEvent) => void;
  /** Settles when everything is shown and the terminal is as it was. */
  close(): Promise<void>;
}
