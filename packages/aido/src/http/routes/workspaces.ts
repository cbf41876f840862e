import type { WorkspaceInfo, Workspaces } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import {
  type WorkspaceReply,
  workspaceListQuery,
  workspaceListReply,
  workspaceQuery,
  workspaceRemovedReply,
} from "@aido/sdk/schemas";
import type { Principal } from "../auth/principal.ts";
import { type Operation, operation } from "../operation.ts";

const TAG = "workspaces";

export function workspaceRoutes(workspaces: Workspaces): Operation[] {
  return [
    operation({
      id: "listWorkspaces",
      method: "get",
      path: "/api/workspaces",
      tag: TAG,
      summary: "List your workspaces",
      scope: "read",
      query: workspaceListQuery,
      replies: { 200: { schema: workspaceListReply, description: "By name" } },
      quiet: true,
      handle: async ({ query, request, http }) => {
        const owner = ownerFor(request.principal, query.owner);
        const all = query.all === "true";
        if (all) refuseOthers(request.principal);
        return http.json({ workspaces: (await workspaces.list({ owner, all })).map(toWire) });
      },
    }),
    operation({
      id: "deleteWorkspace",
      method: "delete",
      path: "/api/workspaces/:name",
      tag: TAG,
      summary: "Remove a workspace that no sandbox has, with all it holds",
      scope: "write",
      query: workspaceQuery,
      replies: { 200: { schema: workspaceRemovedReply, description: "It is gone" } },
      handle: async ({ query, request, http }) => {
        const name = http.req.param("name") ?? "";
        await workspaces.remove(name, { owner: ownerFor(request.principal, query.owner) });
        return http.json({ status: "deleted" as const, name });
      },
    }),
  ];
}

function ownerFor(principal: Principal, asked: string | undefined): string {
  if (asked !== undefined && asked !== principal.owner) refuseOthers(principal);
  return asked ?? principal.owner;
}

function refuseOthers({ scopes }: Principal): void {
  if (scopes.includes("admin")) return;
  throw new AidoError("FORBIDDEN", "Workspaces of others are for administrators");
}

function toWire({ name, owner, sandboxId, createdAt, lastUsedAt, expiresAt }: WorkspaceInfo): WorkspaceReply {
  return {
    ...{ name, owner, containerId: sandboxId ?? null },
    createdAt: createdAt.toISOString(),
    lastUsedAt: lastUsedAt.toISOString(),
    expiresAt: expiresAt?.toISOString() ?? null,
  };
}
