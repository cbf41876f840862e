import type { Logger } from "../core/logger.ts";
import type { Principal } from "./auth/principal.ts";

/** Who asks, under which id it is logged, and when the client has gone away. */
export interface RequestContext {
  requestId: string;
  principal: Principal;
  signal: AbortSignal;
  /** Aborted when the server shuts down: streams end, so that their viewers go on elsewhere. */
  draining: AbortSignal;
  logger: Logger;
  /** The sandbox it is about, for the audit log; set by whoever looks it up. */
  sandboxId?: string;
}
