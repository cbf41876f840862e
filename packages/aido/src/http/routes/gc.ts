import type { Gc } from "@aido/sdk";
import { collectBody, collectReply } from "@aido/sdk/schemas";
import { type Operation, operation } from "../operation.ts";

export function gcRoutes(gc: Gc): Operation[] {
  return [
    operation({
      id: "collect",
      method: "post",
      path: "/api/gc",
      tag: "system",
      summary: "Move sandboxes that have been stopped for long to the next tier, of every owner",
      scope: "admin",
      body: collectBody,
      replies: { 200: { schema: collectReply, description: "What was moved, or would be with `dryRun`" } },
      handle: async ({ body, request, http }) =>
        http.json(await gc.collect({ dryRun: body.dryRun, signal: request.signal })),
    }),
  ];
}
