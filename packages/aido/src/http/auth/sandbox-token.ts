import { AidoError } from "@aido/sdk/protocol";
import type { SandboxTokens } from "../../core/access/sandbox-tokens.ts";
import type { Principal } from "./principal.ts";

/**
 * Whoever has the token of a sandbox may use its sidecar API and nothing else. A sandbox that is not there cannot be told
 * from a wrong token.
 */
export async function authenticateSandbox(
  tokens: SandboxTokens,
  sandboxId: string,
  headers: Headers,
): Promise<Principal> {
  const token = /^Bearer +(\S+)$/i.exec(headers.get("authorization") ?? "")?.[1];
  if (token === undefined) throw new AidoError("UNAUTHORIZED", "Missing authentication token");
  if (!(await tokens.verify(sandboxId, token))) {
    throw new AidoError("FORBIDDEN", "Invalid authentication token");
  }
  return { owner: `sandbox:${sandboxId}`, name: "sidecar token", scopes: [] };
}
