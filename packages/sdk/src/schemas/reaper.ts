import { z } from "zod";

export const reapBody = z.strictObject({
  /** Say what would be ended, and end nothing. */
  dryRun: z.boolean().optional(),
});

/** By sandbox id. */
export const reapReply = z.object({
  /** Nobody had used them for their idle timeout: stopped, with their files. */
  idle: z.array(z.string()),
  /** At the end of their life: destroyed. */
  expired: z.array(z.string()),
  /** Long unused, but at work: left alone. */
  busy: z.array(z.string()),
  failed: z.array(z.object({ id: z.string(), code: z.string(), message: z.string() })),
});
