import type { Sandboxes } from "@aido/sdk";
import { AidoError, isAidoError, type SandboxInfo } from "@aido/sdk/protocol";
import { OWNER_LABEL, ownerOf } from "../core/access/owner-label.ts";
import type { Principal } from "./auth/principal.ts";
import type { RequestContext } from "./request-context.ts";

/** Labels with this prefix are aido's own: set by the server, never by a caller, never shown. */
const OWN_LABEL_PREFIX = "dev.aido.";

/** Where a sandbox is looked up. What says how it is now asks the driver; what only needs to know whose it is need not. */
export interface SandboxLookup {
  readonly sandboxes: Pick<Sandboxes, "list"> & {
    /** With an owner, only among that owner's. */
    get(reference: string, owner?: string): Promise<SandboxInfo>;
  };
}

export function ownerLabels(principal: Pick<Principal, "owner">): Record<string, string> {
  return { [OWNER_LABEL]: principal.owner };
}

export function isOwner(
  principal: Pick<Principal, "owner">,
  labels: Readonly<Record<string, string>>,
): boolean {
  return labels[OWNER_LABEL] === principal.owner;
}

export function publicLabels(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).filter(([name]) => !name.startsWith(OWN_LABEL_PREFIX)));
}

export function refuseOwnLabels(labels: Readonly<Record<string, string>> | undefined): void {
  const taken = Object.keys(labels ?? {}).find((name) => name.startsWith(OWN_LABEL_PREFIX));
  if (taken === undefined) return;
  throw new AidoError("VALIDATION_ERROR", `The label ${taken} is reserved`, {
    hint: `Labels that begin with ${OWN_LABEL_PREFIX} are aido's own.`,
  });
}

/** As `ownSandbox`, noting for the audit log what the request is about. */
export async function requestedSandbox(
  aido: SandboxLookup,
  request: RequestContext,
  reference: string,
): Promise<SandboxInfo> {
  const sandbox = await ownSandbox(aido, request.principal, reference);
  request.sandboxId = sandbox.id;
  return sandbox;
}

/**
 * The sandbox, if it is the caller's. Somebody else's does not exist for them, and cannot be told from none. For an
 * administrator there are all, with its own before those of others.
 */
export async function ownSandbox(
  aido: SandboxLookup,
  principal: Principal,
  reference: string,
): Promise<SandboxInfo> {
  const own = await aido.sandboxes.get(reference, principal.owner).catch((thrown: unknown) => {
    if (isAidoError(thrown, "CONTAINER_NOT_FOUND")) return undefined;
    throw thrown;
  });
  if (own !== undefined && ownerOf(own.labels) === principal.owner) return own;
  if (principal.scopes.includes("admin")) return await aido.sandboxes.get(reference);
  throw notThere(reference);
}

function notThere(reference: string): AidoError {
  return new AidoError(
    "CONTAINER_NOT_FOUND",
    `There is no sandbox ${JSON.stringify(reference.slice(0, 100))}`,
    {
      hint: "GET /api/sandbox lists yours.",
      details: { containerId: reference.slice(0, 100) },
    },
  );
}
