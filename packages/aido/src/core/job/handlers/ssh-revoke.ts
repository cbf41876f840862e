import { findSidecar } from "../find-sidecar.ts";
import type { HandlerDeps, JobHandler, JobSsh } from "../job-handler.ts";

/** Idempotent: a key that is not there is revoked. */
export function sshRevoke(deps: Pick<HandlerDeps, "tokens"> & { ssh: JobSsh }): JobHandler<"SSH_REVOKE"> {
  return async (request, context) => {
    const { id } = await findSidecar(deps, context, request);
    const { username, publicKey: key } = request;
    await deps.ssh.removeKey(id, { username, key });
    return { sandboxId: id, username, revoked: true };
  };
}
