import type { HandlerDeps, JobHandler } from "../job-handler.ts";

export function sandboxStop({ sandboxes }: Pick<HandlerDeps, "sandboxes">): JobHandler<"SANDBOX_STOP"> {
  return async ({ sandboxId }, { caller, signal }) => {
    const { id } = await caller.find(sandboxId);
    await sandboxes.stop(id, { signal });
    return { sandboxId: id, stopped: true };
  };
}
