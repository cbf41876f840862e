import type { WorkflowService } from "../../workflow/workflow-service.ts";
import type { JobHandler } from "../job-handler.ts";

/** For aido's own scheduler: runs what is due and says what became of it. */
export function workflowTick(workflows: WorkflowService): JobHandler<"WORKFLOW_TICK"> {
  return (_, { signal }) => workflows.tick(signal);
}
