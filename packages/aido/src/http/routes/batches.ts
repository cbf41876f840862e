import { batchListReply, batchReply } from "@aido/sdk/schemas";
import type { CoreAido } from "../../core/core-aido.ts";
import { type Operation, operation } from "../operation.ts";
import type { RequestContext } from "../request-context.ts";

const TAG = "jobs";

/** How far batches are; jobs begin them and take their results. */
export function batchRoutes({ batches }: Pick<CoreAido, "batches">): Operation[] {
  return [
    operation({
      id: "listBatches",
      method: "get",
      path: "/api/batches",
      tag: TAG,
      summary: "List your batches, newest first",
      scope: "read",
      replies: { 200: { schema: batchListReply, description: "Those that were not collected" } },
      quiet: true,
      handle: async ({ request, http }) => http.json({ batches: await batches.list(callerOf(request)) }),
    }),
    operation({
      id: "getBatch",
      method: "get",
      path: "/api/batches/:batchId",
      tag: TAG,
      summary: "How far a batch is",
      scope: "read",
      replies: { 200: { schema: batchReply, description: "As it is now" } },
      quiet: true,
      handle: async ({ request, http }) =>
        http.json(await batches.get(http.req.param("batchId") ?? "", callerOf(request))),
    }),
    operation({
      id: "cancelBatch",
      method: "delete",
      path: "/api/batches/:batchId",
      tag: TAG,
      summary: "Begin no further part of a batch and end those that run; its results can be collected",
      scope: "write",
      replies: { 200: { schema: batchReply, description: "As it ended" } },
      handle: async ({ request, http }) =>
        http.json(await batches.cancel(http.req.param("batchId") ?? "", callerOf(request))),
    }),
  ];
}

function callerOf({ principal }: RequestContext) {
  return { owner: principal.owner, isOperator: principal.scopes.includes("admin") };
}
