import { z } from "zod";

export const serverReply = z.object({
  version: z.string(),
  driver: z.string(),
  isolations: z.array(z.string()),
  networks: z.array(z.string()),
  /** Plain sentences about what this server's machine cannot give. */
  warnings: z.array(z.string()),
});

/** By name; see docs/guides/jobs.md. */
export const metricsReply = z.record(z.string(), z.number());
