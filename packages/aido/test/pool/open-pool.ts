import type { CoreAido } from "../../src/core/core-aido.ts";
import type { PoolSpec } from "../../src/core/pool/parse-pool.ts";
import type { WarmPool } from "../../src/core/pool/warm-pool.ts";

export function poolRequest(image: string) {
  return { image, profile: "server", history: true } as const;
}

/** So many as a plain request asks for, or what is given. */
export async function openPool(
  aido: CoreAido,
  image: string,
  wanted: number | readonly PoolSpec[],
): Promise<WarmPool> {
  const { pool } = aido.store as unknown as { pool: Parameters<CoreAido["openPool"]>[1] };
  if (typeof wanted !== "number") return await aido.openPool(wanted, pool);
  const specs = wanted === 0 ? [] : [{ request: poolRequest(image), size: wanted }];
  return await aido.openPool(specs, pool);
}
