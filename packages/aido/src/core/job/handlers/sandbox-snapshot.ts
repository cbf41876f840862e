import { AidoError } from "@aido/sdk/protocol";
import { findSidecar } from "../find-sidecar.ts";
import type { HandlerDeps, JobHandler, JobSnapshots } from "../job-handler.ts";

type Deps = Pick<HandlerDeps, "tokens" | "activity"> & { snapshots: JobSnapshots };

export function sandboxSnapshot(deps: Deps): JobHandler<"SANDBOX_SNAPSHOT"> {
  return async (request, context) => {
    const { includeWorkspace, includeState } = request;
    if (!includeWorkspace && !includeState) {
      throw new AidoError("VALIDATION_ERROR", "A snapshot needs include_workspace, include_state or both", {
        details: { field: "includeWorkspace" },
      });
    }
    const { id } = await findSidecar(deps, context, request);
    using _ = deps.activity.begin(id, "session");
    const destination = request.destination.trim() === "" ? undefined : request.destination.trim();
    const { signal } = context;
    const taken = await deps.snapshots.take(id, { destination, includeWorkspace, includeState, signal });
    const { url, sha256, bytes, createdAt } = taken;
    return { sandboxId: id, url, sha256, bytes, createdAt: createdAt.toISOString() };
  };
}
