import type { Aido } from "@aido/sdk";
import { AidoError, isAidoError } from "@aido/sdk/protocol";
import { IMPLICIT_LABEL, READY, RUN_LABEL, SPEC_LABEL } from "../core/run/run-labels.ts";
import type { Principal } from "./auth/principal.ts";
import { ownerLabels, ownSandbox } from "./ownership.ts";
import type { RequestContext } from "./request-context.ts";

/** In a path, the caller's newest sandbox that was made for runs. No sandbox can be called so. */
export const NEWEST = "@newest";

/** The id of a sandbox made for runs, if it is the caller's: by id, prefix, name, its spec's name, or the newest. */
export async function ownRun(
  aido: Aido,
  request: RequestContext,
  reference: string | undefined,
  options: { forTask?: boolean } = {},
): Promise<string> {
  const id = await find(aido, request.principal, reference, options);
  request.sandboxId = id;
  return id;
}

async function find(
  aido: Aido,
  principal: Principal,
  reference: string | undefined,
  options: { forTask?: boolean },
): Promise<string> {
  if (reference === undefined || reference === NEWEST) {
    const id = await newest(aido, principal, options.forTask === true ? { [IMPLICIT_LABEL]: "no" } : {});
    if (id !== undefined) return id;
    throw new AidoError("CONTAINER_NOT_FOUND", "There is no sandbox to run in yet", {
      hint: "`aido sandbox up` makes one from ./sandbox.yaml, `aido run task.py` one for that task.",
    });
  }
  try {
    return (await ownSandbox(aido, principal, reference)).id;
  } catch (thrown) {
    if (!isAidoError(thrown, "CONTAINER_NOT_FOUND")) throw thrown;
    const id = await newest(aido, principal, { [SPEC_LABEL]: reference });
    if (id === undefined) throw thrown;
    return id;
  }
}

async function newest(
  aido: Aido,
  principal: Principal,
  labels: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  const own = principal.scopes.includes("admin") ? {} : ownerLabels(principal);
  const [found] = await aido.sandboxes.list({ labels: { [RUN_LABEL]: READY, ...labels, ...own }, limit: 1 });
  return found?.id;
}
