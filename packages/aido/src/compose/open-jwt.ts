import { AidoError } from "@aido/sdk/protocol";
import type { ServeConfig } from "../config/config.ts";
import { JwtVerifier } from "../http/auth/jwt-verifier.ts";

/** What HS256 wants of its secret: a shorter one can be found from any one token, by trying. */
const MIN_SECRET_BYTES = 32;

type JwtSettings = Pick<ServeConfig, "jwtSecret" | "jwksUrl" | "jwtIssuer" | "jwtAudience">;

/** Undefined when no tokens are accepted. */
export function openJwt(serve: JwtSettings): JwtVerifier | undefined {
  const secret = serve.jwtSecret?.reveal();
  if (secret === undefined && serve.jwksUrl === undefined) return undefined;
  if (secret !== undefined && Buffer.byteLength(secret) < MIN_SECRET_BYTES) {
    throw new AidoError(
      "INVALID_CONFIG",
      `serve.jwtSecret is too short: whoever has a token could find it by trying; ${MIN_SECRET_BYTES} bytes are the least`,
      { hint: "`openssl rand -hex 32` prints a good one, for AIDO_SERVE_JWT_SECRET and the issuer." },
    );
  }
  return new JwtVerifier({
    secret,
    jwksUrl: serve.jwksUrl,
    issuer: serve.jwtIssuer,
    audience: serve.jwtAudience,
  });
}
