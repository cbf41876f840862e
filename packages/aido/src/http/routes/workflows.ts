import { AidoError } from "@aido/sdk/protocol";
import {
  workflowListQuery,
  workflowListReply,
  workflowReply,
  workflowRunsQuery,
  workflowRunsReply,
} from "@aido/sdk/schemas";
import type { CoreAido } from "../../core/core-aido.ts";
import { type Operation, operation } from "../operation.ts";
import type { RequestContext } from "../request-context.ts";

const TAG = "jobs";

/** What workflows there are and what they did; jobs make, run and cancel them. */
export function workflowRoutes({ workflows }: Pick<CoreAido, "workflows">): Operation[] {
  return [
    operation({
      id: "listWorkflows",
      method: "get",
      path: "/api/workflows",
      tag: TAG,
      summary: "List your workflows, newest first; with activeOnly=true without the cancelled ones",
      scope: "read",
      query: workflowListQuery,
      replies: { 200: { schema: workflowListReply, description: "At most 1000; go on before the last id" } },
      quiet: true,
      handle: async ({ query: { activeOnly, ...page }, request, http }) => {
        const asked = { ...page, activeOnly: activeOnly === "true" };
        return http.json({ workflows: await workflows.list(asked, callerOf(request)) });
      },
    }),
    operation({
      id: "getWorkflow",
      method: "get",
      path: "/api/workflows/:workflowId",
      tag: TAG,
      summary: "A workflow, when it runs next and whether it fails",
      scope: "read",
      replies: { 200: { schema: workflowReply, description: "As it is now" } },
      quiet: true,
      handle: async ({ request, http }) =>
        http.json(await workflows.get(idOf(http.req.param("workflowId")), callerOf(request))),
    }),
    operation({
      id: "listWorkflowRuns",
      method: "get",
      path: "/api/workflows/:workflowId/runs",
      tag: TAG,
      summary: "The last runs of a workflow with their output, newest first",
      scope: "read",
      query: workflowRunsQuery,
      replies: { 200: { schema: workflowRunsReply, description: "At most 100 are kept" } },
      quiet: true,
      handle: async ({ query, request, http }) => {
        const id = idOf(http.req.param("workflowId"));
        return http.json({ runs: await workflows.runs(id, query, callerOf(request)) });
      },
    }),
  ];
}

function idOf(text: string | undefined): number {
  if (/^\d{1,15}$/.test(text ?? "")) return Number(text);
  throw new AidoError("VALIDATION_ERROR", "A workflow is named by its number", {
    hint: "GET /api/workflows lists yours.",
  });
}

function callerOf({ principal }: RequestContext) {
  return { owner: principal.owner, isOperator: principal.scopes.includes("admin") };
}
