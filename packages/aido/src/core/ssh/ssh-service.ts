import type { AddSshKey, Ssh, SshAddress, SshKey } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import type { Clock } from "../clock.ts";
import type { EvidenceSink } from "../evidence/evidence-sink.ts";
import { ExecUsers } from "../exec/exec-users.ts";
import type { SandboxResolver } from "../sandbox/sandbox-resolver.ts";
import type { SandboxRecord, Store } from "../store/store.ts";
import type { Supervisors } from "../supervisor/supervisors.ts";
import type { EndpointFile, SshEndpoint } from "./endpoint-file.ts";
import { checkUsername, parseLoginName, toLoginName } from "./login-name.ts";
import { fingerprintOf, parsePublicKey } from "./public-key.ts";
import { SandboxDisk } from "./sandbox-disk.ts";
import type { SshKeyName, SshKeyRecord } from "./ssh-key-store.ts";

const MAX_KEYS = 100;
/** Owners whose sandboxes of one name are looked at for a login; beyond that the id is needed. */
const MAX_NAMESAKES = 100;

export interface SshServiceDeps {
  store: Pick<Store, "sandboxes" | "sshKeys">;
  sandboxes: SandboxResolver;
  supervisors: Supervisors;
  evidence: EvidenceSink;
  clock: Clock;
  endpoint: Pick<EndpointFile, "read" | "write" | "remove">;
  settled?: ((sandboxId: string) => Promise<void> | undefined) | undefined;
}

/** Who may log in to which sandbox, and what a login reaches there. Speaking SSH is the server's part. */
export class SshService implements Ssh {
  readonly #deps: SshServiceDeps;
  readonly #users = new ExecUsers();
  readonly #listeners = new Set<(key: SshKeyName) => void>();

  constructor(deps: SshServiceDeps) {
    this.#deps = deps;
  }

  async addKey(sandbox: string, request: AddSshKey): Promise<SshKey> {
    const key = parsePublicKey(request.publicKey);
    const username = checkUsername(request.username);
    const record = await this.#deps.sandboxes.resolve(sandbox);
    if (username !== "") await this.#checkUser(record, username);
    const known = await this.#deps.store.sshKeys.list(record.id);
    const name = { sandboxId: record.id, username, fingerprint: key.fingerprint };
    const before = known.find(
      (other) => other.username === username && other.fingerprint === key.fingerprint,
    );
    if (before !== undefined) return toSshKey(before);
    if (known.length >= MAX_KEYS) throw tooMany(record.id);
    const { type, line: publicKey, comment } = key;
    const added = await this.#deps.store.sshKeys.add({
      ...name,
      type,
      publicKey,
      comment,
      createdAt: this.#deps.clock.now(),
    });
    await this.#tell("ssh.key.added", name);
    return toSshKey(added);
  }

  async removeKey(
    sandbox: string,
    request: { key: string; username?: string | undefined },
  ): Promise<boolean> {
    const text = request.key.trim();
    const fingerprint = text.startsWith("SHA256:") ? text : parsePublicKey(text).fingerprint;
    const username = checkUsername(request.username);
    const { id } = await this.#deps.sandboxes.resolve(sandbox);
    const name = { sandboxId: id, username, fingerprint };
    const removed = await this.#deps.store.sshKeys.remove(name);
    if (removed) await this.#tell("ssh.key.removed", name);
    for (const listener of this.#listeners) listener(name);
    return removed;
  }

  async keys(sandbox: string): Promise<readonly SshKey[]> {
    const { id } = await this.#deps.sandboxes.resolve(sandbox);
    return (await this.#deps.store.sshKeys.list(id)).map(toSshKey);
  }

  async address(sandbox: string, username?: string): Promise<SshAddress> {
    const name = checkUsername(username);
    const { id } = await this.#deps.sandboxes.resolve(sandbox);
    const endpoint = await this.#deps.endpoint.read();
    if (endpoint === undefined) throw notServed();
    return { ...endpoint, login: toLoginName({ sandboxId: id, username: name }) };
  }

  /** Undefined when no server listens. */
  async port(): Promise<number | undefined> {
    return (await this.#deps.endpoint.read())?.port;
  }

  /** This process's server listens here from now on; undefined when it no longer does. */
  async listens(endpoint: SshEndpoint | undefined): Promise<void> {
    if (endpoint === undefined) await this.#deps.endpoint.remove();
    else await this.#deps.endpoint.write(endpoint);
  }

  /** The key this login is allowed with. What does not exist and what is not allowed cannot be told apart. */
  async authorize(loginName: string, blob: Uint8Array): Promise<SshKeyRecord | undefined> {
    const login = parseLoginName(loginName);
    if (login === undefined) return undefined;
    const { sandboxes, sshKeys } = this.#deps.store;
    const fingerprint = fingerprintOf(blob);
    const allowed: SshKeyRecord[] = [];
    for (const { id, name } of await sandboxes.find(login.sandboxId, MAX_NAMESAKES)) {
      // An id or a name as it is, never the beginning of one: whose sandbox it is must not be guessed.
      if (id !== login.sandboxId && name !== login.sandboxId) continue;
      const key = await sshKeys.get({ sandboxId: id, username: login.username, fingerprint });
      if (key !== undefined) allowed.push(key);
    }
    // Anybody can name a sandbox so and let this key in: then only the id says which is meant.
    return allowed.length === 1 ? allowed[0] : undefined;
  }

  /** False from the moment on that the key is revoked or its sandbox destroyed, by whichever process. */
  async isAllowed(name: SshKeyName): Promise<boolean> {
    if ((await this.#deps.store.sshKeys.get(name)) === undefined) return false;
    const record = await this.#deps.store.sandboxes.get(name.sandboxId);
    return record !== undefined && record.state !== "deleted";
  }

  /** Calls back for each key that this process revokes; returns how to stop that. */
  onRemoved(listener: (key: SshKeyName) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The sandbox's files as the login's user sees them. */
  async openDisk(key: SshKeyName, signal: AbortSignal): Promise<SandboxDisk> {
    const record = await this.#deps.sandboxes.resolveRunning(key.sandboxId);
    const supervisor = this.#deps.supervisors.get(record);
    const user =
      key.username === "" ? undefined : await this.#users.resolve(supervisor, key.username, signal);
    return new SandboxDisk({
      run: async (argv, options = {}) => {
        if (options.isChange === true) await this.#deps.settled?.(record.id);
        return supervisor.tool(argv, { stdin: options.stdin, user, signal: options.signal ?? signal });
      },
      home: record.workdir,
      tell: (event, detail) =>
        this.#deps.evidence.append(record.id, event, { ...detail, fingerprint: key.fingerprint }),
    });
  }

  /** What happened on a connection, for the evidence. */
  tell(key: SshKeyName, event: string, detail: Readonly<Record<string, unknown>>): Promise<void> {
    return this.#tell(event, key, detail);
  }

  async #tell(event: string, key: SshKeyName, detail: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const { sandboxId, username, fingerprint } = key;
    await this.#deps.evidence.append(sandboxId, event, {
      fingerprint,
      ...(username === "" ? {} : { username }),
      ...detail,
    });
  }

  /** A user that the sandbox does not have, or cannot run anything as, is refused rather than replaced by another. */
  async #checkUser(record: SandboxRecord, username: string): Promise<void> {
    if (record.state !== "running") return;
    const supervisor = this.#deps.supervisors.get(record);
    const user = await this.#users.resolve(supervisor, username);
    const run = supervisor.tool(["stat", "/", "/"], { user });
    await run.done.catch((cause: unknown) => {
      throw new AidoError("VALIDATION_ERROR", `Nothing in sandbox ${record.id} can run as ${username}`, {
        hint: "Leave the user name out to log in as the sandbox's own user.",
        cause,
      });
    });
  }
}

function toSshKey({ username, ...key }: SshKeyRecord): SshKey {
  return { ...key, username: username === "" ? undefined : username };
}

function tooMany(id: string): AidoError {
  return new AidoError("QUOTA_EXCEEDED", `Sandbox ${id} has ${MAX_KEYS} SSH keys, which is the most`, {
    hint: `Remove some with \`aido ssh rm-key ${id} <key>\`.`,
  });
}

function notServed(): AidoError {
  return new AidoError("SSH_NOT_SERVED", "No server listens for SSH", {
    hint: "Start one with `aido serve --ssh-port 2222`.",
  });
}
