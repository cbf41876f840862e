import { AidoError } from "@aido/sdk/protocol";
import type { RunDeps } from "./run-deps.ts";

/** What is destroyed has no place for results any more, and whatever failed for that says less than this. */
export async function refuseDestroyed(deps: Pick<RunDeps, "store">, sandboxId: string): Promise<void> {
  const sandbox = await deps.store.sandboxes.get(sandboxId);
  if (sandbox !== undefined && sandbox.state !== "deleted") return;
  throw new AidoError("CONTAINER_NOT_FOUND", `Sandbox ${sandboxId} was destroyed while its task ran`, {
    details: { sandboxId },
  });
}
