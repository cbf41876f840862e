import { AidoError, isAidoError } from "@aido/sdk/protocol";
import type { SandboxClaims } from "./sandbox-claims.ts";
import type { SandboxDeps } from "./sandbox-deps.ts";
import type { SandboxEnder } from "./sandbox-ender.ts";

const WAIT_MS = 60_000;
const POLL_MS = 50;

/** Removes sandboxes for good, whoever else is at it: when it returns they are gone. */
export class SandboxDestroyer {
  readonly #deps: Pick<SandboxDeps, "store" | "clock">;
  readonly #claims: SandboxClaims;
  readonly #ender: SandboxEnder;

  constructor(deps: Pick<SandboxDeps, "store" | "clock">, claims: SandboxClaims, ender: SandboxEnder) {
    this.#deps = deps;
    this.#claims = claims;
    this.#ender = ender;
  }

  async destroy(id: string, signal?: AbortSignal): Promise<void> {
    const { store, clock } = this.#deps;
    const deadline = clock.now().getTime() + WAIT_MS;
    while (!(await this.#claims.seize(id, "destroy", () => this.#destroyNow(id)))) {
      // Another process destroys it: what counts is that it is gone when this returns.
      await clock.sleep(POLL_MS, signal);
      if (clock.now().getTime() > deadline) {
        throw new AidoError("CONTAINER_BUSY", `Sandbox ${id} is still being destroyed by another process`);
      }
      if ((await store.claims.get(id)) === undefined) {
        const now = await store.sandboxes.get(id);
        if (now === undefined || now.state === "deleted") return;
      }
    }
  }

  async #destroyNow(id: string): Promise<void> {
    const record = await this.#deps.store.sandboxes.get(id);
    if (record === undefined) return;
    try {
      await this.#ender.destroy(record, undefined);
    } catch (thrown) {
      if (isAidoError(thrown)) throw thrown;
      throw new AidoError("CONTAINER_REMOVAL_FAILED", `Sandbox ${id} could not be removed completely`, {
        hint: `Try \`aido sandbox destroy --sandbox ${id}\` again.`,
        details: { id },
        cause: thrown,
      });
    }
  }
}
