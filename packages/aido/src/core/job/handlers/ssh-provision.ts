import { findSidecar } from "../find-sidecar.ts";
import type { HandlerDeps, JobHandler, JobSsh } from "../job-handler.ts";

/** Idempotent: a key that is there already stays as it is. */
export function sshProvision(
  deps: Pick<HandlerDeps, "tokens"> & { ssh: JobSsh },
): JobHandler<"SSH_PROVISION"> {
  return async (request, context) => {
    const { id } = await findSidecar(deps, context, request);
    const { username, publicKey } = request;
    await deps.ssh.addKey(id, { username, publicKey });
    return { sandboxId: id, username, provisioned: true, sshPort: (await deps.ssh.port()) ?? null };
  };
}
