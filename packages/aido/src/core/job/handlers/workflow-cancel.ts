import type { WorkflowService } from "../../workflow/workflow-service.ts";
import type { JobHandler } from "../job-handler.ts";

export function workflowCancel(workflows: WorkflowService): JobHandler<"WORKFLOW_CANCEL"> {
  return async ({ workflowId }, { caller }) => {
    await workflows.cancel(workflowId, caller);
    return { workflowId, status: "canceled" };
  };
}
