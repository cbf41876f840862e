import { z } from "zod";
import { date } from "./values.ts";

export const workspaceReply = z.object({
  name: z.string(),
  owner: z.string(),
  /** The sandbox that has it now. */
  containerId: z.string().nullable(),
  createdAt: date,
  lastUsedAt: date,
  /** When it is removed unless a sandbox takes it. */
  expiresAt: date.nullable(),
});
export type WorkspaceReply = z.infer<typeof workspaceReply>;

export const workspaceListReply = z.object({ workspaces: z.array(workspaceReply) });
export const workspaceListQuery = z.strictObject({
  /** Somebody else's; for administrators. */
  owner: z.string().min(1).max(300).optional(),
  /** Of every owner; for administrators. */
  all: z.enum(["true", "false"]).optional(),
});
export const workspaceQuery = workspaceListQuery.pick({ owner: true });
export const workspaceRemovedReply = z.object({ status: z.literal("deleted"), name: z.string() });
