import type { Logger } from "../core/logger.ts";
import type { Principal } from "./auth/principal.ts";

/** Who asks, under which id it is logged, and when the client has gone away. */
export interface RequestContext {
  requestId: string;
  principal: Principal;
  signal: AbortSignal;
  logger: Logger;
}
