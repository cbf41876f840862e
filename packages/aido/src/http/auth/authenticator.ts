import { createHash, timingSafeEqual } from "node:crypto";
import { AidoError } from "@aido/sdk/protocol";
import type { ApiKeys } from "../../core/access/api-keys.ts";
import type { JwtVerifier } from "./jwt-verifier.ts";
import { LOCAL_PRINCIPAL, type Principal } from "./principal.ts";
import { refuseForeignPages } from "./refuse-foreign-pages.ts";

export interface Authenticator {
  /** Raises MISSING_AUTH, INVALID_AUTH_FORMAT or INVALID_API_KEY. */
  authenticate(headers: Headers): Promise<Principal>;
}

const KEY = /^aido_([a-z0-9]{8})_([A-Za-z0-9_-]{43})$/;

/** Keys and tokens. Without either configured, everybody who can connect is the local user. */
export class BearerAuthenticator implements Authenticator {
  readonly #keys: ApiKeys;
  readonly #jwt: JwtVerifier | undefined;
  readonly #allowedOrigins: readonly string[];
  readonly #now: () => Date;
  readonly #isOpen: boolean;
  #isRequired: boolean;

  /**
   * `required`: false lets callers without a key in, until the first key is made. From then on it is asked for, also
   * when it is revoked; with `open` only while there is one that is not.
   */
  constructor(options: {
    keys: ApiKeys;
    jwt: JwtVerifier | undefined;
    required: boolean;
    open?: boolean;
    allowedOrigins?: readonly string[];
    now?: () => Date;
  }) {
    this.#keys = options.keys;
    this.#jwt = options.jwt;
    this.#isRequired = options.required;
    this.#isOpen = options.open ?? false;
    this.#allowedOrigins = options.allowedOrigins ?? [];
    this.#now = options.now ?? (() => new Date());
  }

  async authenticate(headers: Headers): Promise<Principal> {
    const credential = credentialOf(headers);
    if (credential === undefined) {
      if (!(await this.#mustHaveKey())) {
        refuseForeignPages(headers, this.#allowedOrigins);
        return LOCAL_PRINCIPAL;
      }
      throw new AidoError("MISSING_AUTH", "This server needs a key", {
        hint: "Send Authorization: Bearer <key>; `aido key create` makes one.",
      });
    }
    const match = KEY.exec(credential);
    if (match?.[1] !== undefined && match[2] !== undefined) return this.#byKey(match[1], match[2]);
    if (this.#jwt !== undefined && credential.split(".").length === 3) return this.#jwt.verify(credential);
    throw invalid();
  }

  async #mustHaveKey(): Promise<boolean> {
    this.#isRequired ||= await (this.#isOpen ? this.#keys.hasAny() : this.#keys.hadAny());
    return this.#isRequired;
  }

  async #byKey(id: string, secret: string): Promise<Principal> {
    const record = await this.#keys.get(id);
    const given = createHash("sha256").update(secret).digest();
    // An unknown id costs the same comparison, so that ids cannot be told apart by time.
    const known = Buffer.from(record?.secretHash ?? "0".repeat(64), "hex");
    const equal = timingSafeEqual(given, known);
    if (record === undefined || !equal || record.revokedAt !== undefined) throw invalid();
    if (record.expiresAt !== undefined && record.expiresAt <= this.#now()) {
      throw new AidoError("INVALID_API_KEY", "This key has expired", {
        hint: "`aido key create` makes a new one.",
      });
    }
    const { name, scopes, limits } = record;
    return { owner: `key:${record.id}`, name, scopes, rateLimit: limits.rateLimit };
  }
}

function credentialOf(headers: Headers): string | undefined {
  const apiKey = headers.get("x-api-key");
  if (apiKey !== null) return apiKey;
  const header = headers.get("authorization");
  if (header === null) return undefined;
  const match = /^Bearer +(\S+)$/i.exec(header);
  if (match?.[1] === undefined) {
    throw new AidoError("INVALID_AUTH_FORMAT", "The authorization header is not `Bearer <key>`");
  }
  return match[1];
}

function invalid(): AidoError {
  return new AidoError("INVALID_API_KEY", "This key is not known", {
    hint: "`aido key list` shows the keys of this server.",
  });
}
