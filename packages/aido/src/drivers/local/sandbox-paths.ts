import { dirname, join } from "node:path";
import { AidoError } from "@aido/sdk/protocol";

/** One sandbox's directory below the driver's root. Only `work`, `etc` and names are visible inside. */
export class SandboxPaths {
  readonly directory: string;

  constructor(root: string, sandboxId: string) {
    if (!/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/.test(sandboxId)) {
      throw new AidoError("VALIDATION_ERROR", `${JSON.stringify(sandboxId)} is no sandbox id`);
    }
    this.directory = join(root, sandboxId);
  }

  /** Holds the supervisor's socket. */
  get run(): string {
    return join(this.directory, "run");
  }

  get socket(): string {
    return join(this.run, "agent.sock");
  }

  /** One of the files of /etc that tell the sandbox's name. */
  name(file: string): string {
    return join(this.directory, file);
  }

  /** Of a sandbox whose user is no other's; all others share theirs. */
  get etc(): string {
    return join(this.directory, "etc");
  }

  /** The driver's own, for what all sandboxes share. */
  get root(): string {
    return dirname(this.directory);
  }

  /** The workdir of a sandbox that has no mount for it; survives stop and start. */
  get work(): string {
    return join(this.directory, "work");
  }

  /** What bubblewrap tells: first process, exit code. */
  get status(): string {
    return join(this.directory, "status.json");
  }

  /** What bubblewrap and the supervisor complain about. */
  get log(): string {
    return join(this.directory, "supervisor.log");
  }
}
