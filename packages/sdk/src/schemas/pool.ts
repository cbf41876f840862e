import { z } from "zod";

export const poolReply = z.object({
  pool: z.array(
    z.object({
      image: z.string(),
      isolation: z.string(),
      /** As configured. */
      size: z.number(),
      /** By recent demand; up to twice the size. */
      target: z.number(),
      ready: z.number(),
      hits: z.number(),
      misses: z.number(),
    }),
  ),
});
