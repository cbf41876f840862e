import type { HandlerDeps, JobHandler } from "../job-handler.ts";

export function sandboxDelete({ sandboxes }: Pick<HandlerDeps, "sandboxes">): JobHandler<"SANDBOX_DELETE"> {
  return async ({ sandboxId }, { caller, signal }) => {
    const { id } = await caller.find(sandboxId);
    await sandboxes.destroy(id, signal);
    return { sandboxId: id, deleted: true };
  };
}
