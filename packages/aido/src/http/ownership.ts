import type { Aido } from "@aido/sdk";
import { AidoError, type SandboxInfo } from "@aido/sdk/protocol";
import type { Principal } from "./auth/principal.ts";

/** Labels with this prefix are aido's own: set by the server, never by a caller, never shown. */
const OWN_LABEL_PREFIX = "dev.aido.";
const OWNER_LABEL = "dev.aido.owner";

export function ownerLabels(principal: Principal): Record<string, string> {
  return { [OWNER_LABEL]: principal.owner };
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

/** The sandbox, if it is the caller's. Somebody else's does not exist for them. */
export async function ownSandbox(aido: Aido, principal: Principal, reference: string): Promise<SandboxInfo> {
  const sandbox = await aido.sandboxes.get(reference);
  if (!principal.scopes.includes("admin") && sandbox.labels[OWNER_LABEL] !== principal.owner) {
    throw new AidoError("CONTAINER_NOT_FOUND", `There is no sandbox ${reference}`, {
      hint: "GET /api/sandbox lists yours.",
      details: { containerId: reference },
    });
  }
  return sandbox;
}
