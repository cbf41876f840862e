import { AidoError } from "@aido/sdk/protocol";
import type { ServeConfig } from "../config/config.ts";
import type { ApiKeys } from "../core/access/api-keys.ts";

/** Who gets in: everybody, whoever has a key or token, or nobody, because every key has ended. */
export type Entrance = "open" | "guarded" | "shut";

const LOOPBACK = new Set(["127.0.0.1", "::1", "localhost"]);

/**
 * On loopback, where there never was a key, everybody is the local user; elsewhere a server without a key is refused.
 * Revoking the last key lets nobody in rather than everybody.
 */
export async function chooseEntrance(
  serve: ServeConfig,
  keys: Pick<ApiKeys, "list">,
  now = new Date(),
): Promise<Entrance> {
  if (serve.jwtSecret !== undefined || serve.jwksUrl !== undefined) return "guarded";
  const made = await keys.list();
  const kept = made.filter(({ revokedAt }) => revokedAt === undefined);
  if (kept.some(({ expiresAt }) => expiresAt === undefined || expiresAt > now)) return "guarded";
  if ((serve.open ? kept : made).length > 0) return "shut";
  if (LOOPBACK.has(serve.host)) return "open";
  throw new AidoError(
    "INVALID_CONFIG",
    `A server on ${serve.host} needs keys: anybody could run code on this machine`,
    {
      hint: "Make one with `aido key create <name>`, or listen on 127.0.0.1.",
    },
  );
}
