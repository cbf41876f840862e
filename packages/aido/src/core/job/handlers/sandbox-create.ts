import type { CreatedSandbox, Parsed, SandboxCreateRequest, SandboxCreateResult } from "@aido/sdk/protocol";
import type { HandlerDeps, JobContext, JobHandler } from "../job-handler.ts";
import { toCreateSandbox } from "../to-create-sandbox.ts";

export function sandboxCreate(deps: HandlerDeps): JobHandler<"SANDBOX_CREATE"> {
  return (request, context) => createOne(deps, request, context);
}

/** One sandbox with a sidecar; `id` when it was chosen before. */
export async function createOne(
  _deps: HandlerDeps,
  request: Parsed<SandboxCreateRequest>,
  { caller, signal }: JobContext,
  id?: string,
): Promise<SandboxCreateResult> {
  const sandbox = await caller.create({ ...toCreateSandbox(request), id }, { signal });
  return toResult(sandbox);
}

function toResult(sandbox: CreatedSandbox): SandboxCreateResult {
  return {
    sandboxId: sandbox.id,
    sidecarUrl: sandbox.sidecarUrl ?? "",
    token: sandbox.token ?? "",
    sshPort: null,
  };
}
