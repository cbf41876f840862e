import { poolReply } from "@aido/sdk/schemas";
import type { PoolState } from "../../core/pool/warm-pool.ts";
import { type Operation, operation } from "../operation.ts";

export function poolRoutes(state: () => readonly PoolState[]): Operation[] {
  return [
    operation({
      id: "getPool",
      method: "get",
      path: "/api/pool",
      tag: "system",
      summary: "Sandboxes that are kept ready, by kind",
      scope: "admin",
      replies: { 200: { schema: poolReply, description: "Empty when no pool is configured" } },
      quiet: true,
      handle: ({ http }) => http.json({ pool: state() }),
    }),
  ];
}
