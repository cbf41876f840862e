import type { WorkflowService } from "../../workflow/workflow-service.ts";
import type { JobHandler } from "../job-handler.ts";

export function workflowCreate(workflows: WorkflowService): JobHandler<"WORKFLOW_CREATE"> {
  return async (request, { caller }) => {
    const { id, nextRunAt } = await workflows.create(request, caller);
    return { workflowId: id, status: "active", nextRunAt: nextRunAt?.toISOString() ?? null };
  };
}
