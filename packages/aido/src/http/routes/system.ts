import { metricsReply } from "@aido/sdk/schemas";
import { docsPage } from "../docs-page.ts";
import type { HttpMetrics } from "../metrics.ts";
import { openApiDocument } from "../openapi.ts";
import { type Operation, operation } from "../operation.ts";

export interface SystemDeps {
  version: string;
  metrics: HttpMetrics;
  /** Asks driver, store and disk; names of what does not do its work. */
  failing: () => Promise<readonly string[]>;
  isDraining: () => boolean;
  /** All operations, these included, for the OpenAPI document. */
  operations: () => readonly Operation[];
}

export function systemRoutes(deps: SystemDeps): Operation[] {
  let document: object | undefined;
  return [
    operation({
      id: "health",
      method: "get",
      path: "/health",
      tag: "system",
      summary: "The process lives",
      scope: "public",
      replies: { 200: { description: "It does" } },
      quiet: true,
      unlimited: true,
      handle: ({ http }) => http.json({ status: "ok", version: deps.version }),
    }),
    operation({
      id: "ready",
      method: "get",
      path: "/ready",
      tag: "system",
      summary: "Driver, store and disk do their work",
      scope: "public",
      replies: {
        200: { description: "Send requests" },
        503: { description: "Do not; says what is missing" },
      },
      quiet: true,
      handle: async ({ http }) => {
        const failing = deps.isDraining() ? ["shutting down"] : await deps.failing();
        if (failing.length > 0) return http.json({ status: "unavailable", failing }, 503);
        return http.json({ status: "ok" });
      },
    }),
    operation({
      id: "metrics",
      method: "get",
      path: "/metrics",
      tag: "system",
      summary: "Counters and histograms for Prometheus",
      scope: "read",
      replies: { 200: { contentType: "text/plain", description: "Prometheus text format" } },
      quiet: true,
      unaudited: true,
      handle: async ({ http }) =>
        http.body(await deps.metrics.render(), 200, { "content-type": "text/plain; version=0.0.4" }),
    }),
    operation({
      id: "counters",
      method: "get",
      path: "/api/metrics",
      tag: "system",
      summary: "Jobs, sandboxes, sessions, reaper and garbage collection in numbers",
      scope: "read",
      replies: {
        200: { schema: metricsReply, description: "Counters are kept for good; others are as of now" },
      },
      quiet: true,
      unaudited: true,
      handle: async ({ http }) => http.json(await deps.metrics.counted()),
    }),
    operation({
      id: "openapi",
      method: "get",
      path: "/openapi.json",
      tag: "system",
      summary: "This API as OpenAPI 3.1",
      scope: "public",
      replies: { 200: { description: "The document" } },
      quiet: true,
      handle: ({ http }) => {
        document ??= openApiDocument(deps.operations(), deps.version);
        return http.json(document);
      },
    }),
    operation({
      id: "docs",
      method: "get",
      path: "/docs",
      tag: "system",
      summary: "This API as a page",
      scope: "public",
      replies: { 200: { contentType: "text/html", description: "The page" } },
      quiet: true,
      handle: ({ http }) => {
        http.header("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'");
        return http.html(docsPage(deps.operations(), deps.version));
      },
    }),
  ];
}
