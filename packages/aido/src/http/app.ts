import { AidoError, isAidoError } from "@aido/sdk/protocol";
import { type Context, Hono } from "hono";
import type { SandboxTokens } from "../core/access/sandbox-tokens.ts";
import type { Logger } from "../core/logger.ts";
import type { AddressLimiter } from "./address-limiter.ts";
import type { AuditTrail } from "./audit-trail.ts";
import type { Authenticator } from "./auth/authenticator.ts";
import type { FailedLogins } from "./auth/failed-logins.ts";
import { authenticateSandbox } from "./auth/sandbox-token.ts";
import { corsHeaders } from "./cors.ts";
import { errorReply } from "./error-reply.ts";
import { clientAddress, clientSignal, limitBodyIdle, readJson } from "./incoming.ts";
import type { HttpMetrics } from "./metrics.ts";
import type { Operation } from "./operation.ts";
import type { RateLimiter } from "./rate-limiter.ts";
import { type RequestOutcome, reportRequest } from "./report-request.ts";
import type { RequestContext } from "./request-context.ts";
import { requestIdOf } from "./request-id.ts";
import { sidecarErrorReply } from "./sidecar/sidecar-reply.ts";

export interface AppOptions {
  operations: readonly Operation[];
  authenticator: Authenticator;
  sandboxTokens: SandboxTokens;
  rateLimiter: RateLimiter;
  failedLogins: FailedLogins;
  /** Of operations that need no key. */
  addressLimiter: AddressLimiter;
  audit: AuditTrail;
  metrics: HttpMetrics;
  logger: Logger;
  /** Of JSON bodies; streams are bounded by what they write to. */
  maxBodyBytes: number;
  /** Within a body, until its next byte. */
  bodyIdleMs: number;
  /** Origins that browsers may call from; none by default. */
  corsOrigins: readonly string[];
  /** Aborted when the server drains; running requests go on, new ones are refused. */
  draining: AbortSignal;
}

/** The whole API as one function from request to reply, from a list of operations. */
export function createApp(options: AppOptions): Hono {
  const app = new Hono({ strict: false });
  app.use(async (http, next) => {
    const headers = corsHeaders(http.req.header("origin"), options.corsOrigins);
    if (http.req.method === "OPTIONS") return new Response(null, { status: 204, headers });
    await next();
    for (const [name, value] of Object.entries(headers)) http.res.headers.set(name, value);
    return undefined;
  });
  for (const operation of options.operations) {
    app.on(operation.method.toUpperCase(), operation.path, (http) => serve(operation, http, options));
  }
  const patterns = options.operations.map(({ method, path }) => ({
    method: method.toUpperCase(),
    pattern: new RegExp(`^${path.replace(/:\w+/g, "[^/]+")}/?$`),
  }));
  app.notFound((http) => {
    const allowed = patterns.filter(({ pattern }) => pattern.test(http.req.path)).map(({ method }) => method);
    const requestId = requestIdOf(http.req.header("aido-request-id"));
    const tell = http.req.path.startsWith("/sidecar/") ? sidecarErrorReply : errorReply;
    const { error, response } = tell(noSuchOperation(http, allowed), requestId);
    if (allowed.length > 0) response.headers.set("allow", allowed.join(", "));
    options.metrics.request("none", response.status, 0, error.code);
    return response;
  });
  return app;
}

function noSuchOperation(http: Context, allowed: readonly string[]): AidoError {
  const message = `There is no ${http.req.method} ${http.req.path}`;
  if (allowed.length === 0) {
    return new AidoError("RESOURCE_NOT_FOUND", message, { hint: "GET /docs shows all there is." });
  }
  return new AidoError("METHOD_NOT_ALLOWED", message, { hint: `This path takes ${allowed.join(", ")}.` });
}

async function serve(operation: Operation, http: Context, options: AppOptions): Promise<Response> {
  const started = performance.now();
  const requestId = requestIdOf(http.req.header("aido-request-id"));
  const signal = clientSignal(http);
  const headers: Record<string, string> = { "aido-request-id": requestId };
  let request: RequestContext | undefined;
  let response: Response;
  let failure: AidoError | undefined;
  try {
    if (options.draining.aborted && operation.scope !== "public") {
      throw new AidoError("SHUTTING_DOWN", "The server is shutting down", { hint: "Ask again in a moment." });
    }
    request = await admit(operation, http, options, { requestId, signal });
    if (operation.scope !== "public") {
      const { owner, rateLimit } = request.principal;
      const taken = options.rateLimiter.take(owner, rateLimit);
      Object.assign(headers, taken.headers);
      if (taken.refusal !== undefined) throw taken.refusal;
    } else if (operation.unlimited !== true) options.addressLimiter.take(http);
    limitBodyIdle(http, options.bodyIdleMs);
    const body = operation.body === undefined ? undefined : await readJson(http, options.maxBodyBytes);
    response = await operation.handle({
      params: operation.params?.parse(http.req.param()),
      query: operation.query?.parse(queryOf(http)),
      body: operation.body?.parse(body),
      request,
      http,
    } as never);
  } catch (thrown) {
    const tell = operation.errors === "sidecar" ? sidecarErrorReply : errorReply;
    const reply = tell(orCancelled(thrown, signal), requestId);
    failure = reply.error;
    response = reply.response;
  }
  if (options.draining.aborted) headers["connection"] = "close";
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
  const durationMs = performance.now() - started;
  finish(operation, http, options, { requestId, request, response, failure, durationMs });
  // Nobody reads the body of such a reply, nor ends what makes it.
  if (http.req.method === "HEAD") await response.body?.cancel();
  return response;
}

/** Whatever fails because the client has left is no failure of the server. */
function orCancelled(thrown: unknown, signal: AbortSignal): unknown {
  if (!signal.aborted || isAidoError(thrown)) return thrown;
  return new AidoError("CANCELLED", "The client left before it was answered", { cause: thrown });
}

async function admit(
  operation: Operation,
  http: Context,
  options: AppOptions,
  { requestId, signal }: Pick<RequestContext, "requestId" | "signal">,
): Promise<RequestContext> {
  const logger = options.logger.child({ requestId });
  const { draining } = options;
  if (operation.scope === "public") {
    return {
      requestId,
      logger,
      signal,
      draining,
      principal: { owner: "public", name: "public", scopes: [] },
    };
  }
  if (operation.scope === "sandbox") {
    const sandboxId = http.req.param("sandboxId") ?? "";
    const principal = await options.failedLogins.watchGuesses(clientAddress(http), sandboxId, () =>
      authenticateSandbox(options.sandboxTokens, sandboxId, http.req.raw.headers),
    );
    return { requestId, logger, signal, draining, principal, sandboxId };
  }
  const principal = await options.failedLogins.watch(clientAddress(http), () =>
    options.authenticator.authenticate(http.req.raw.headers),
  );
  if (!principal.scopes.includes(operation.scope) && !principal.scopes.includes("admin")) {
    throw new AidoError("FORBIDDEN", `This key may not do that; it needs the scope ${operation.scope}`);
  }
  return { requestId, logger, signal, draining, principal };
}

interface Outcome {
  requestId: string;
  request: RequestContext | undefined;
  response: Response;
  failure: AidoError | undefined;
  durationMs: number;
}

function finish(operation: Operation, http: Context, options: AppOptions, outcome: Outcome): void {
  const { requestId, request, response, failure, durationMs } = outcome;
  const isQuiet = operation.quiet === true;
  reportRequest(options, {
    operation: operation.id,
    requestId,
    principal: request?.principal,
    sandbox: request?.sandboxId ?? http.req.param("containerId") ?? http.req.param("sandboxId"),
    status: response.status,
    failure,
    durationMs,
    audit: auditOf(operation),
    isQuiet,
  });
}

/** S3-45: everything that needs a key; reads that clients repeat all day once a minute, so that the log stays readable. */
function auditOf({ scope, method, quiet, unaudited }: Operation): RequestOutcome["audit"] {
  if (scope === "public" || unaudited === true) return "none";
  const isRead = method === "get" || scope === "read";
  return quiet === true && isRead ? "repeats" : "all";
}

/** Repeated parameters become arrays; schemas say where that is allowed. */
function queryOf(http: Context): Record<string, string | string[]> {
  const all = http.req.queries();
  return Object.fromEntries(
    Object.entries(all).map(([name, values]) => [name, values.length === 1 ? (values[0] ?? "") : values]),
  );
}
