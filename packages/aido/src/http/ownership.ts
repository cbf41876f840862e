import type { Sandboxes } from "@aido/sdk";
import { AidoError, isAidoError, type SandboxInfo } from "@aido/sdk/protocol";
import { OWNER_LABEL } from "../core/access/owner-label.ts";
import type { Principal } from "./auth/principal.ts";
import type { RequestContext } from "./request-context.ts";

/** Labels with this prefix are aido's own: set by the server, never by a caller, never shown. */
const OWN_LABEL_PREFIX = "dev.aido.";
const SHOWN_MATCHES = 5;

/** Where a sandbox is looked up. What says how it is now asks the driver; what only needs to know whose it is need not. */
export interface SandboxLookup {
  readonly sandboxes: Pick<Sandboxes, "get" | "list">;
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

/** The sandbox, if it is the caller's. Somebody else's does not exist for them, and cannot be told from none. */
export async function ownSandbox(
  aido: SandboxLookup,
  principal: Principal,
  reference: string,
): Promise<SandboxInfo> {
  if (principal.scopes.includes("admin")) return aido.sandboxes.get(reference);
  const sandbox = await aido.sandboxes
    .get(reference)
    .catch((thrown: unknown) => explain(aido, principal, reference, thrown));
  if (!isOwner(principal, sandbox.labels)) throw notThere(reference);
  return sandbox;
}

/** What core says about a reference may be about sandboxes of others; only what is the caller's own is passed on. */
async function explain(
  aido: SandboxLookup,
  principal: Principal,
  reference: string,
  thrown: unknown,
): Promise<SandboxInfo> {
  if (isAidoError(thrown, "CONTAINER_AMBIGUOUS")) {
    const own = await aido.sandboxes.list({ labels: ownerLabels(principal) });
    const matches = own.filter(({ id }) => id.startsWith(reference));
    const [first] = matches;
    if (first === undefined) throw notThere(reference);
    if (matches.length === 1) return first;
    const ids = matches.slice(0, SHOWN_MATCHES).map(({ id }) => id);
    throw new AidoError("CONTAINER_AMBIGUOUS", `${reference} is the beginning of several sandboxes`, {
      hint: "Give more of the id.",
      details: { matches: ids },
    });
  }
  if (isAidoError(thrown, "CONTAINER_EXPIRED")) {
    const gone = await aido.sandboxes.list({ labels: ownerLabels(principal), states: ["deleted"] });
    throw gone.some(({ id }) => id === reference) ? thrown : notThere(reference);
  }
  throw isAidoError(thrown, "CONTAINER_NOT_FOUND") ? notThere(reference) : thrown;
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
