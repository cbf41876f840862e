import { toWorkflowConfig } from "@aido/sdk/protocol";
import type { WorkflowService } from "../../workflow/workflow-service.ts";
import type { JobHandler } from "../job-handler.ts";

export function workflowCreate(workflows: WorkflowService): JobHandler<"WORKFLOW_CREATE"> {
  return async (request, { caller, workflowId }) => {
    const workflow = await workflows.create(request, caller, workflowId);
    const nextRunAt = workflow.nextRunAt?.toISOString() ?? null;
    return { workflowId: workflow.id, status: "active", nextRunAt, config: toWorkflowConfig(workflow) };
  };
}
