import { join } from "node:path";
import { AidoError } from "@aido/sdk/protocol";

/** Where things lie in the data directory. Nothing here but `mounts`, `workspaces` and `hosts` is ever visible inside a sandbox. */
export class DataDir {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  get database(): string {
    return join(this.root, "aido.db");
  }

  /** What addresses of ports are made from; readable by the server alone. */
  get serverSecret(): string {
    return join(this.root, "server.key");
  }

  /** The private key by which SSH clients know the server. */
  get sshHostKey(): string {
    return join(this.root, "ssh_host_ed25519_key");
  }

  /** Where the server listens for SSH, while it does. */
  get sshEndpoint(): string {
    return join(this.root, "ssh.json");
  }

  get evidence(): string {
    return join(this.root, "evidence");
  }

  get sandboxes(): string {
    return join(this.root, "sandboxes");
  }

  sandbox(id: string): string {
    return join(this.sandboxes, plainName(id));
  }

  /** What sandboxes have as their working directory and leave to the next: hostile, as all that they write. */
  get workspaces(): string {
    return join(this.root, "workspaces");
  }

  workspace(id: string): string {
    return join(this.workspaces, plainName(id));
  }

  /** The /etc/hosts of sandboxes whose engine makes none for them; mounted read-only. */
  get hosts(): string {
    return join(this.root, "hosts");
  }

  /** On which of several engines each sandbox is. */
  get engines(): string {
    return join(this.root, "engines");
  }

  execs(id: string): string {
    return join(this.sandbox(id), "execs");
  }

  exec(id: string, execId: string): string {
    return join(this.execs(id), plainName(execId));
  }

  eventsLog(id: string): string {
    return join(this.sandbox(id), "events.log");
  }

  /** Directories that are mounted into the sandbox and hostile from then on. */
  mounts(id: string): string {
    return join(this.sandbox(id), "mounts");
  }

  /** Holds the supervisor's socket; mounted at /run/aido. */
  run(id: string): string {
    return join(this.sandbox(id), "run");
  }
}

/** What is below such a place is written and removed: an id of a record that somebody else made must not lead elsewhere. */
function plainName(id: string): string {
  if (id !== "" && id !== "." && id !== ".." && !/[/\0]/.test(id)) return id;
  throw new AidoError("INVALID_PATH", `${JSON.stringify(id.slice(0, 80))} is no name of a directory`);
}
