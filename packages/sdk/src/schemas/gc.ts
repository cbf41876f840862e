import { z } from "zod";

export const collectBody = z.strictObject({
  /** Say what would be moved, and move nothing. */
  dryRun: z.boolean().optional(),
});

/** By sandbox id. */
export const collectReply = z.object({
  /** From a stopped container to an image of it. */
  warmed: z.array(z.string()),
  /** From the image to the object store. */
  cooled: z.array(z.string()),
  /** Removed for good; only their evidence is kept. */
  removed: z.array(z.string()),
  failed: z.array(z.object({ id: z.string(), code: z.string(), message: z.string() })),
});
