import { createHmac, timingSafeEqual, verify } from "node:crypto";
import { AidoError } from "@aido/sdk/protocol";
import { SCOPES, type Scope } from "../../core/access/api-keys.ts";
import { KeySet } from "./key-set.ts";
import type { Principal } from "./principal.ts";

export interface JwtOptions {
  /** For HS256. */
  secret?: string | undefined;
  /** For RS256 and ES256: where the issuer publishes its keys. */
  jwksUrl?: string | undefined;
  issuer?: string | undefined;
  audience?: string | undefined;
  now?: () => number;
  fetch?: typeof fetch;
}

interface Claims {
  sub?: unknown;
  name?: unknown;
  exp?: unknown;
  nbf?: unknown;
  iss?: unknown;
  aud?: unknown;
  scope?: unknown;
}

const LEEWAY_SECONDS = 30;
const MAX_TOKEN_BYTES = 8_192;

/** Checks tokens of an issuer the operator trusts. The token never chooses the algorithm's family. */
export class JwtVerifier {
  readonly #options: JwtOptions;
  readonly #now: () => number;
  readonly #keys: KeySet | undefined;

  constructor(options: JwtOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => Date.now());
    const { jwksUrl: url } = options;
    this.#keys =
      url === undefined ? undefined : new KeySet({ url, fetch: options.fetch ?? fetch, now: this.#now });
  }

  async verify(token: string): Promise<Principal> {
    const [head, body, signature, more] = token.split(".");
    if (
      head === undefined ||
      body === undefined ||
      signature === undefined ||
      more !== undefined ||
      token.length > MAX_TOKEN_BYTES
    ) {
      throw refused("it is not a token");
    }
    const header = decode(head) as { alg?: unknown; kid?: unknown; crit?: unknown };
    if (header.crit !== undefined) throw refused("it asks for something that is not known here");
    const signed = Buffer.from(`${head}.${body}`);
    const mac = Buffer.from(signature, "base64url");
    const good =
      header.alg === "HS256"
        ? this.#checkHmac(signed, mac)
        : await this.#checkSignature(header.alg, String(header.kid ?? ""), signed, mac);
    if (!good) throw refused("its signature is wrong");
    return this.#principal(decode(body) as Claims);
  }

  #checkHmac(signed: Buffer, mac: Buffer): boolean {
    if (this.#options.secret === undefined) return false;
    const expected = createHmac("sha256", this.#options.secret).update(signed).digest();
    return expected.length === mac.length && timingSafeEqual(expected, mac);
  }

  async #checkSignature(algorithm: unknown, kid: string, signed: Buffer, mac: Buffer): Promise<boolean> {
    if (algorithm !== "RS256" && algorithm !== "ES256") return false;
    const known = await this.#keys?.get(kid);
    if (known === undefined || known.algorithm !== algorithm) return false;
    const key = algorithm === "ES256" ? { key: known.key, dsaEncoding: "ieee-p1363" as const } : known.key;
    return verify("sha256", signed, key, mac);
  }

  #principal(claims: Claims): Principal {
    const seconds = this.#now() / 1000;
    if (typeof claims.sub !== "string" || claims.sub === "") throw refused("it names no subject");
    if (typeof claims.exp !== "number") throw refused("it has no expiry");
    if (claims.exp + LEEWAY_SECONDS < seconds) throw refused("it has expired");
    if (typeof claims.nbf === "number" && claims.nbf - LEEWAY_SECONDS > seconds)
      throw refused("it is not valid yet");
    if (this.#options.issuer !== undefined && claims.iss !== this.#options.issuer)
      throw refused("its issuer is another");
    const audiences = Array.isArray(claims.aud) ? claims.aud : [claims.aud];
    if (this.#options.audience !== undefined && !audiences.includes(this.#options.audience)) {
      throw refused("it is meant for another audience");
    }
    const name = typeof claims.name === "string" ? claims.name : claims.sub;
    return { owner: `jwt:${claims.sub}`, name, scopes: scopesOf(claims.scope) };
  }
}

/** A token without scopes may read and write its own sandboxes; `admin` is never implied. Some issuers give a list of them. */
function scopesOf(scope: unknown): readonly Scope[] {
  if (scope === undefined) return ["read", "write"];
  const words: unknown[] = typeof scope === "string" ? scope.split(" ") : Array.isArray(scope) ? scope : [];
  return SCOPES.filter((known) => words.includes(known) || words.includes(`aido:${known}`));
}

function decode(part: string): object {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, "base64url").toString("utf8"));
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // Told below, like any other shape that is not a token.
  }
  throw refused("it is not a token");
}

function refused(why: string): AidoError {
  return new AidoError("INVALID_API_KEY", `The token was refused: ${why}`);
}
