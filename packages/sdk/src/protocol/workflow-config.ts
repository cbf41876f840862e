import type { WorkflowCreateRequest } from "./job-requests.ts";
import type { WorkflowInfo } from "./workflow.ts";

/**
 * All that a registry needs to keep of a workflow: sent as a WORKFLOW_CREATE to another aido it makes the same one there.
 * Never has a token. Variables and prompts are in it as they were written.
 */
export type WorkflowConfig = Required<WorkflowCreateRequest>;

/** One that runs in a sandbox which is there names it, so only the aido that has the sandbox can make it again. */
export function toWorkflowConfig(
  workflow: Pick<WorkflowInfo, "name" | "trigger" | "steps" | "sandboxId" | "sandboxConfigJson">,
): WorkflowConfig {
  const { name, trigger, sandboxId, sandboxConfigJson } = workflow;
  const steps = workflow.steps.map(({ kind: _, ...step }) => step);
  const { type: triggerType, ...schedule } = trigger;
  return {
    name,
    workflowJson: JSON.stringify({ ...(sandboxId !== undefined && { sidecarUrl: sandboxId }), steps }),
    triggerType,
    triggerConfig: triggerType === "manual" ? "" : JSON.stringify(schedule),
    sandboxConfigJson,
  };
}
