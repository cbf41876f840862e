import type { WorkspaceReply } from "../schemas/workspaces.ts";
import type { WorkspaceFilter, WorkspaceInfo, Workspaces } from "../workspaces.ts";
import type { Transport } from "./transport.ts";

export class HttpWorkspaces implements Workspaces {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async list({ owner, all }: WorkspaceFilter = {}): Promise<readonly WorkspaceInfo[]> {
    const query = { owner, all: all === true ? "true" : undefined };
    const reply = await this.#transport.json<{ workspaces: WorkspaceReply[] }>("/api/workspaces", {
      query,
      repeatable: true,
    });
    return reply.workspaces.map(toWorkspace);
  }

  async remove(name: string, { owner }: { owner?: string | undefined } = {}): Promise<void> {
    const call = { method: "DELETE" as const, query: { owner }, slow: true };
    await this.#transport.json(`/api/workspaces/${encodeURIComponent(name)}`, call);
  }
}

function toWorkspace({
  containerId,
  createdAt,
  lastUsedAt,
  expiresAt,
  ...rest
}: WorkspaceReply): WorkspaceInfo {
  return {
    ...rest,
    sandboxId: containerId ?? undefined,
    createdAt: new Date(createdAt),
    lastUsedAt: new Date(lastUsedAt),
    expiresAt: expiresAt === null ? undefined : new Date(expiresAt),
  };
}
