/** Headers that let a page of an allowed origin read replies; none for any other. */
export function corsHeaders(
  origin: string | undefined,
  allowed: readonly string[],
): Readonly<Record<string, string>> {
  if (origin === undefined || !isAllowedOrigin(origin, allowed)) return {};
  return {
    "access-control-allow-origin": origin,
    "access-control-allow-headers":
      "authorization, content-type, idempotency-key, last-event-id, x-api-key, aido-request-id",
    "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE",
    "access-control-expose-headers":
      "aido-request-id, idempotency-replayed, ratelimit-limit, ratelimit-remaining, ratelimit-reset, retry-after",
    vary: "origin",
  };
}

export function isAllowedOrigin(origin: string, allowed: readonly string[]): boolean {
  return allowed.includes(origin) || allowed.includes("*");
}
