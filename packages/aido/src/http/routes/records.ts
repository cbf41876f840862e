import type { Aido } from "@aido/sdk";
import { z } from "zod";
import type { AuditTrail } from "../audit-trail.ts";
import { type Operation, operation } from "../operation.ts";
import { ownSandbox } from "../ownership.ts";

const auditQuery = z.strictObject({
  sandbox: z.string().max(255).optional(),
  before: z.coerce.number().int().positive().optional(),
  limit: z.coerce.number().int().min(1).max(1000).optional(),
});
const DEFAULT_LIMIT = 100;

/** What outlives sandboxes: evidence and the audit log. */
export function recordRoutes(aido: Aido, audit: AuditTrail): Operation[] {
  return [
    operation({
      id: "readEvidence",
      method: "get",
      path: "/api/sandbox/:containerId/evidence",
      tag: "records",
      summary: "The hash-chained record of a sandbox, one JSON object a line",
      scope: "read",
      replies: { 200: { contentType: "application/x-ndjson", description: "Oldest first" } },
      quiet: true,
      handle: async ({ request, http }) => {
        const id = http.req.param("containerId") ?? "";
        // Destroyed sandboxes have no owner on record, so their evidence is for administrators.
        const known = request.principal.scopes.includes("admin")
          ? id
          : (await ownSandbox(aido, request.principal, id)).id;
        return new Response(lines(aido.evidence.read(known)), {
          headers: { "content-type": "application/x-ndjson" },
        });
      },
    }),
    operation({
      id: "verifyEvidence",
      method: "get",
      path: "/api/evidence/verify",
      tag: "records",
      summary: "Check every chain, or the one of `?sandbox=`",
      scope: "admin",
      query: z.strictObject({ sandbox: z.string().max(255).optional() }),
      replies: { 200: { description: "A verdict for each sandbox" } },
      quiet: true,
      handle: async ({ query, http }) => http.json({ verdicts: await aido.evidence.verify(query.sandbox) }),
    }),
    operation({
      id: "listAudit",
      method: "get",
      path: "/api/audit",
      tag: "records",
      summary: "Who asked for what, newest first",
      scope: "read",
      query: auditQuery,
      replies: { 200: { description: "One page of entries" } },
      quiet: true,
      handle: async ({ query, request, http }) => {
        const entries = await audit.list({
          limit: query.limit ?? DEFAULT_LIMIT,
          before: query.before,
          sandbox: query.sandbox,
          owner: request.principal.scopes.includes("admin") ? undefined : request.principal.owner,
        });
        return http.json({
          entries: entries.map((entry) => ({ ...entry, at: entry.at.toISOString() })),
          next: entries.at(-1)?.id ?? null,
        });
      },
    }),
  ];
}

function lines(entries: AsyncIterable<unknown>): ReadableStream<Uint8Array> {
  const iterator = entries[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done === true) controller.close();
      else controller.enqueue(encoder.encode(`${JSON.stringify(value)}\n`));
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}
