import type { SshKeyReply } from "../schemas/ssh.ts";
import type { AddSshKey, Ssh, SshAddress, SshKey } from "../ssh.ts";
import type { Transport } from "./transport.ts";

const at = (sandbox: string, what: string): string => `/api/sandbox/${encodeURIComponent(sandbox)}/${what}`;

export class HttpSsh implements Ssh {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async addKey(sandbox: string, request: AddSshKey): Promise<SshKey> {
    const call = { method: "POST" as const, json: request, repeatable: true };
    return toSshKey(await this.#transport.json<SshKeyReply>(at(sandbox, "ssh-keys"), call));
  }

  async removeKey(
    sandbox: string,
    request: { key: string; username?: string | undefined },
  ): Promise<boolean> {
    const { key, username } = request;
    const call = { method: "DELETE" as const, query: { key, username } };
    return (await this.#transport.json<{ removed: boolean }>(at(sandbox, "ssh-keys"), call)).removed;
  }

  async keys(sandbox: string): Promise<readonly SshKey[]> {
    const call = { repeatable: true };
    return (await this.#transport.json<{ keys: SshKeyReply[] }>(at(sandbox, "ssh-keys"), call)).keys.map(
      toSshKey,
    );
  }

  address(sandbox: string, username?: string): Promise<SshAddress> {
    return this.#transport.json<SshAddress>(at(sandbox, "ssh"), { query: { username }, repeatable: true });
  }
}

function toSshKey({ containerId, username, createdAt, ...key }: SshKeyReply): SshKey {
  return {
    ...key,
    sandboxId: containerId,
    username: username ?? undefined,
    createdAt: new Date(createdAt),
  };
}
