import {
  AidoError,
  type CreatedSandbox,
  type Parsed,
  type SandboxCreateRequest,
  type SandboxCreateResult,
} from "@aido/sdk/protocol";
import type { HandlerDeps, JobContext, JobHandler } from "../job-handler.ts";
import { toCreateSandbox } from "../to-create-sandbox.ts";

type Deps = Pick<HandlerDeps, "ssh" | "sandboxes">;

export function sandboxCreate(deps: Deps): JobHandler<"SANDBOX_CREATE"> {
  return (request, context) => createOne(deps, request, context);
}

/** One sandbox with a sidecar; labels of the caller's own go over those of the request. */
export async function createOne(
  deps: Deps,
  request: Parsed<SandboxCreateRequest>,
  { caller, signal }: JobContext,
  labels: Readonly<Record<string, string>> = {},
): Promise<SandboxCreateResult> {
  const wanted = toCreateSandbox(request);
  const port = request.sshEnabled ? await deps.ssh?.port() : undefined;
  if (request.sshEnabled && port === undefined) throw withoutSsh();
  const sandbox = await caller.create({ ...wanted, labels: { ...wanted.labels, ...labels } }, { signal });
  if (request.sshEnabled && request.sshPublicKey.trim() !== "") {
    try {
      await deps.ssh?.addKey(sandbox.id, { publicKey: request.sshPublicKey });
    } catch (thrown) {
      // Nobody would learn its token any more.
      await deps.sandboxes.destroy(sandbox.id);
      throw thrown;
    }
  }
  return toResult(sandbox, port ?? null);
}

function toResult(sandbox: CreatedSandbox, sshPort: number | null): SandboxCreateResult {
  return {
    sandboxId: sandbox.id,
    sidecarUrl: sandbox.sidecarUrl ?? "",
    token: sandbox.token ?? "",
    sshPort,
  };
}

function withoutSsh(): AidoError {
  return new AidoError("UNSUPPORTED", "This aido has no SSH server", {
    hint: "Leave ssh_enabled out, or start the server with `aido serve --ssh-port 2222`.",
    details: { field: "sshEnabled" },
  });
}
