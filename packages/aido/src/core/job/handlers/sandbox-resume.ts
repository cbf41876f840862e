import type { HandlerDeps, JobHandler } from "../job-handler.ts";

export function sandboxResume({ sandboxes }: Pick<HandlerDeps, "sandboxes">): JobHandler<"SANDBOX_RESUME"> {
  return async ({ sandboxId }, { caller, signal }) => {
    const { id } = await caller.find(sandboxId);
    await sandboxes.start(id, signal);
    return { sandboxId: id, resumed: true };
  };
}
