import type { Scope } from "../../core/access/api-keys.ts";
import { ANONYMOUS } from "../../core/access/owner-label.ts";

/** Whoever is behind a request. Sandboxes belong to an owner and are invisible to others. */
export interface Principal {
  /** `key:<id>`, `jwt:<sub>` or `anonymous`; stored with what it makes. */
  owner: string;
  /** For people: audit and evidence. */
  name: string;
  scopes: readonly Scope[];
  /** Requests a minute, where it is not the server's setting; 0 means no limit. */
  rateLimit?: number | undefined;
}

/** Without keys the server listens on loopback only, and whoever reaches it may do everything. */
export const LOCAL_PRINCIPAL: Principal = {
  owner: ANONYMOUS,
  name: ANONYMOUS,
  scopes: ["read", "write", "admin"],
};
