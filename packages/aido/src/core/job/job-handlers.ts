import { exec } from "./handlers/exec.ts";
import { sandboxCreate } from "./handlers/sandbox-create.ts";
import { sandboxDelete } from "./handlers/sandbox-delete.ts";
import { sandboxResume } from "./handlers/sandbox-resume.ts";
import { sandboxStop } from "./handlers/sandbox-stop.ts";
import type { HandlerDeps, JobHandlers } from "./job-handler.ts";

/** Every job this aido does, one file each. */
export function jobHandlers(deps: HandlerDeps): JobHandlers {
  return {
    SANDBOX_CREATE: sandboxCreate(deps),
    SANDBOX_STOP: sandboxStop(deps),
    SANDBOX_RESUME: sandboxResume(deps),
    SANDBOX_DELETE: sandboxDelete(deps),
    EXEC: exec(deps),
  };
}
