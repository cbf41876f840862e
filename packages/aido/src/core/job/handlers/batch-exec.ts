import { findSidecars } from "../find-sidecars.ts";
import type { HandlerDeps, JobHandler } from "../job-handler.ts";
import { toEnv } from "../json-fields.ts";
import { execIn, refuseEmpty } from "./exec.ts";

export function batchExec(deps: HandlerDeps): JobHandler<"BATCH_EXEC"> {
  return async (request, context) => {
    refuseEmpty(request.command);
    toEnv(request.envJson);
    const sandboxes = await findSidecars(deps, context, request);
    const { batchId, items } = await deps.batches.run(
      {
        kind: "exec",
        id: request.batchId,
        count: sandboxes.length,
        parallel: request.parallel,
        about: (position) => ({ sidecarUrl: request.sidecarUrls[position] ?? "" }),
        work: (position, signal) => execIn(deps, sandboxes[position]?.id ?? "", request, { signal }),
      },
      context.caller,
      context.signal,
    );
    return { batchId, execResults: items };
  };
}
