import type { AidoError } from "@aido/sdk/protocol";
import type { Logger } from "../core/logger.ts";
import type { AuditTrail } from "./audit-trail.ts";
import type { Principal } from "./auth/principal.ts";
import type { HttpMetrics } from "./metrics.ts";

export interface RequestReports {
  audit: AuditTrail;
  metrics: HttpMetrics;
  logger: Logger;
}

export interface RequestOutcome {
  /** The operation's id. */
  operation: string;
  requestId: string;
  /** Unknown when it was refused before. */
  principal: Principal | undefined;
  sandbox: string | undefined;
  status: number;
  failure: AidoError | undefined;
  durationMs: number;
  /** `repeats`: of the same by the same caller one in a minute is enough. */
  audit: "all" | "repeats" | "none";
  /** Asked often and of little interest. */
  isQuiet: boolean;
}

/** Whatever was asked of the server, by request or by socket, is counted, logged and kept here. */
export function reportRequest({ audit, metrics, logger }: RequestReports, outcome: RequestOutcome): void {
  const { operation, requestId, principal, status, failure, durationMs } = outcome;
  metrics.request(operation, status, durationMs, failure?.code);
  // Whoever sends wrong keys without end does not fill the audit log with them.
  const isFlood = principal === undefined && failure?.code === "RATE_LIMITED";
  if (outcome.audit !== "none" && !isFlood) {
    const entry = {
      requestId,
      operation,
      owner: principal?.owner ?? "unknown",
      name: principal?.name ?? "unknown",
      sandbox: outcome.sandbox?.slice(0, 255),
      status,
      code: failure?.code,
      at: new Date(),
    };
    if (outcome.audit === "repeats") audit.recordRepeated(entry);
    else audit.record(entry);
  }
  const fields = { event: operation, status, durationMs: Math.round(durationMs), code: failure?.code };
  if (failure?.kind === "internal") {
    const error = { error: failure.stack, cause: String(failure.cause) };
    logger.error({ ...fields, requestId, ...error }, "request failed");
  } else {
    logger[outcome.isQuiet ? "debug" : "info"]({ ...fields, requestId }, "request");
  }
}
