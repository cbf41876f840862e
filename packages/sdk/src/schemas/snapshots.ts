import { z } from "zod";

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** Without a destination the snapshot goes to the operator's own place. */
export const snapshotBody = z.strictObject({
  destination: z.string().max(4096).optional(),
  includeWorkspace: z.boolean().optional(),
  includeState: z.boolean().optional(),
});
export const snapshotReply = z.object({
  url: z.string(),
  sha256,
  bytes: z.number(),
  createdAt: z.string(),
});
export const restoreBody = z.strictObject({ url: z.string().min(1).max(4096), sha256: sha256.optional() });
export const restoreReply = z.object({ status: z.literal("success") });
