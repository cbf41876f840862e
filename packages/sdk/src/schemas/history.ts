import { z } from "zod";
import { execId } from "./values.ts";

/** Newest first; the first entry of a workspace has id `unknown` and message `Initial commit`. */
export const historyEntry = z.object({
  id: z.string(),
  commitId: z.string().regex(/^[0-9a-f]{40}$/),
  timestamp: z.string(),
  message: z.string(),
  files: z.array(z.string()),
  truncated: z.boolean().optional(),
});
export const historyQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(1000).optional(),
  /** Only entries before the one with this id: the last of the page before. */
  before: execId.optional(),
});
export const historyReply = z.object({ history: z.array(historyEntry) });
export const diffBody = z.strictObject({
  fromExecId: z.string().min(1).max(64),
  toExecId: z.string().min(1).max(64),
});
/** Path to unified diff text. */
export const diffReply = z.object({ diff: z.record(z.string(), z.string()) });
export const rollbackBody = z.strictObject({ executionId: z.string().min(1).max(64) });
export const rollbackReply = z.object({
  status: z.literal("success"),
  message: z.string(),
  entry: historyEntry,
});
export const treeReply = z.object({
  tree: z.array(
    z.object({ path: z.string(), mode: z.string(), type: z.enum(["file", "symlink"]), size: z.number() }),
  ),
});
