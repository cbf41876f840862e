import { AidoError } from "@aido/sdk/protocol";
import type { SandboxResolver } from "../sandbox/sandbox-resolver.ts";
import type { SandboxRecord, SandboxStore } from "../store/store.ts";

/** Takes the word of whoever holds a sandbox's claim that its container runs, whatever the record says. */
export class UncheckedResolver implements SandboxResolver {
  readonly #sandboxes: Pick<SandboxStore, "get">;

  constructor(sandboxes: Pick<SandboxStore, "get">) {
    this.#sandboxes = sandboxes;
  }

  async resolve(id: string): Promise<SandboxRecord> {
    const record = await this.#sandboxes.get(id);
    if (record !== undefined) return record;
    throw new AidoError("CONTAINER_NOT_FOUND", `Sandbox ${id} does not exist`);
  }

  resolveRunning(id: string): Promise<SandboxRecord> {
    return this.resolve(id);
  }
}
