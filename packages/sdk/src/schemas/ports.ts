import { z } from "zod";

export const portReply = z.object({
  containerId: z.string(),
  port: z.number().int(),
  token: z.string(),
  /** Below the server's own address. */
  path: z.string(),
  url: z.string(),
  /** A host name of the port's own; null when the sandbox's id cannot be part of one. */
  host: z.string().nullable(),
});
export type PortReply = z.infer<typeof portReply>;
