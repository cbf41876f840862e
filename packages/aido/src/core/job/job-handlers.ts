import { batchCollect } from "./handlers/batch-collect.ts";
import { batchCreate } from "./handlers/batch-create.ts";
import { batchExec } from "./handlers/batch-exec.ts";
import { batchTask } from "./handlers/batch-task.ts";
import { exec } from "./handlers/exec.ts";
import { prompt } from "./handlers/prompt.ts";
import { sandboxCreate } from "./handlers/sandbox-create.ts";
import { sandboxDelete } from "./handlers/sandbox-delete.ts";
import { sandboxResume } from "./handlers/sandbox-resume.ts";
import { sandboxSnapshot } from "./handlers/sandbox-snapshot.ts";
import { sandboxStop } from "./handlers/sandbox-stop.ts";
import { sshProvision } from "./handlers/ssh-provision.ts";
import { sshRevoke } from "./handlers/ssh-revoke.ts";
import { task } from "./handlers/task.ts";
import { workflowCancel } from "./handlers/workflow-cancel.ts";
import { workflowCreate } from "./handlers/workflow-create.ts";
import { workflowTick } from "./handlers/workflow-tick.ts";
import { workflowTrigger } from "./handlers/workflow-trigger.ts";
import type { HandlerDeps, JobHandlers } from "./job-handler.ts";

/** Every job this aido does, one file each. */
export function jobHandlers(deps: HandlerDeps): JobHandlers {
  const { agents, snapshots, ssh, workflows } = deps;
  return {
    SANDBOX_CREATE: sandboxCreate(deps),
    SANDBOX_STOP: sandboxStop(deps),
    SANDBOX_RESUME: sandboxResume(deps),
    SANDBOX_DELETE: sandboxDelete(deps),
    ...(snapshots && { SANDBOX_SNAPSHOT: sandboxSnapshot({ ...deps, snapshots }) }),
    EXEC: exec(deps),
    ...(agents && {
      PROMPT: prompt({ ...deps, agents }),
      TASK: task({ ...deps, agents }),
      BATCH_TASK: batchTask({ ...deps, agents }),
    }),
    BATCH_CREATE: batchCreate(deps),
    BATCH_EXEC: batchExec(deps),
    BATCH_COLLECT: batchCollect(deps),
    ...(workflows && {
      WORKFLOW_CREATE: workflowCreate(workflows),
      WORKFLOW_TRIGGER: workflowTrigger(workflows),
      WORKFLOW_CANCEL: workflowCancel(workflows),
      WORKFLOW_TICK: workflowTick(workflows),
    }),
    ...(ssh && { SSH_PROVISION: sshProvision({ ...deps, ssh }), SSH_REVOKE: sshRevoke({ ...deps, ssh }) }),
  };
}
