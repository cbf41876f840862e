import type { Aido } from "@aido/sdk";
import { z } from "zod";
import type { AuditTrail } from "../audit-trail.ts";
import { type Operation, operation } from "../operation.ts";
import { requestedSandbox } from "../ownership.ts";
import type { RequestContext } from "../request-context.ts";
import { firstChunkThenStream } from "../streams/first-chunk.ts";

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
        const id = await evidenceOf(aido, audit, request, http.req.param("containerId") ?? "");
        const body = await firstChunkThenStream(() => lines(aido.evidence.read(id)), request.signal);
        return new Response(body, { headers: { "content-type": "application/x-ndjson" } });
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
        const limit = query.limit ?? DEFAULT_LIMIT;
        const entries = await audit.list({
          limit,
          before: query.before,
          sandbox: query.sandbox,
          owner: request.principal.scopes.includes("admin") ? undefined : request.principal.owner,
        });
        return http.json({
          entries: entries.map((entry) => ({ ...entry, at: entry.at.toISOString() })),
          next: entries.length < limit ? null : (entries.at(-1)?.id ?? null),
        });
      },
    }),
  ];
}

/** Evidence outlives the sandbox, and with it the label that names its owner; the audit log still knows them. */
async function evidenceOf(
  aido: Aido,
  audit: AuditTrail,
  request: RequestContext,
  reference: string,
): Promise<string> {
  const { principal } = request;
  try {
    return (await requestedSandbox(aido, request, reference)).id;
  } catch (thrown) {
    if (principal.scopes.includes("admin")) return reference;
    const { owner } = principal;
    const entries = await audit.list({ owner, sandbox: reference, succeeded: true, limit: 1 });
    // Somebody else's sandbox was never there for them: only its owner has entries that succeeded.
    if (entries.length > 0) return reference;
    throw thrown;
  }
}

async function* lines(entries: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  for await (const entry of entries) yield encoder.encode(`${JSON.stringify(entry)}\n`);
}
