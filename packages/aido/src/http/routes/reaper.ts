import type { Reaper } from "@aido/sdk";
import { reapBody, reapReply } from "@aido/sdk/schemas";
import { type Operation, operation } from "../operation.ts";

export function reaperRoutes(reaper: Reaper): Operation[] {
  return [
    operation({
      id: "reap",
      method: "post",
      path: "/api/reap",
      tag: "system",
      summary: "Stop what is idle and destroy what has reached the end of its life, of every owner",
      scope: "admin",
      body: reapBody,
      replies: { 200: { schema: reapReply, description: "What was ended, or would be with `dryRun`" } },
      handle: async ({ body, request, http }) =>
        http.json(await reaper.reap({ dryRun: body.dryRun, signal: request.signal })),
    }),
  ];
}
