import type { CoreAido } from "../../src/core/core-aido.ts";
import type { WarmPool } from "../../src/core/pool/warm-pool.ts";

export function poolRequest(image: string) {
  return { image, profile: "server", history: true } as const;
}

export async function openPool(aido: CoreAido, image: string, size: number): Promise<WarmPool> {
  const { pool } = aido.store as unknown as { pool: Parameters<CoreAido["openPool"]>[1] };
  const specs = size === 0 ? [] : [{ request: poolRequest(image), size }];
  return await aido.openPool(specs, pool);
}
