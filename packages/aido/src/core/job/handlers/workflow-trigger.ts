import type { WorkflowService } from "../../workflow/workflow-service.ts";
import type { JobHandler } from "../job-handler.ts";

export function workflowTrigger(workflows: WorkflowService): JobHandler<"WORKFLOW_TRIGGER"> {
  return ({ workflowId }, { caller, signal }) => workflows.trigger(workflowId, caller, signal);
}
