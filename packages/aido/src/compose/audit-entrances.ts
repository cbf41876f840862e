import { randomUUID } from "node:crypto";
import type { AuditEntry } from "../core/access/audit.ts";
import type { AuditTrail } from "../http/audit-trail.ts";
import type { PortReply } from "../http/proxy/port-proxy.ts";
import type { SshUse } from "../ssh/ssh-connection.ts";

/** What comes in by the address of a port. Who has the address is not known; a page asks many times in a moment. */
export function auditPort(audit: AuditTrail, { port: reached, status, code }: PortReply): void {
  if (reached === undefined) return;
  const { sandboxId, port, isUpgrade } = reached;
  const caller = { owner: `port:${sandboxId}:${port}`, name: `port ${port}` };
  const entry = entryOf({ operation: "proxyPort", ...caller, sandbox: sandboxId, status, code });
  if (isUpgrade) audit.record(entry);
  else audit.recordRepeated(entry);
}

export function auditSsh(audit: AuditTrail, { key, operation }: SshUse): void {
  const caller = { owner: `ssh:${key.fingerprint}`, name: key.fingerprint };
  audit.record(entryOf({ operation, ...caller, sandbox: key.sandboxId, status: 200, code: undefined }));
}

function entryOf(entry: Omit<AuditEntry, "requestId" | "at">): AuditEntry {
  return { ...entry, requestId: randomUUID(), at: new Date() };
}
