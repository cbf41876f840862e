import { AidoError, isAidoError } from "@aido/sdk/protocol";
import type { RunRow, SandboxRecord } from "../store/store.ts";
import type { RunDeps } from "./run-deps.ts";
import { IMPLICIT_LABEL, READY, RUN_LABEL, SPEC_LABEL } from "./run-labels.ts";

export interface FoundRun {
  sandbox: SandboxRecord;
  row: RunRow;
}

/** Finds the sandbox a user means: by id, prefix, name, the spec's name, or the newest. */
export class RunFinder {
  readonly #deps: RunDeps;

  constructor(deps: RunDeps) {
    this.#deps = deps;
  }

  async find(reference: string | undefined): Promise<FoundRun> {
    return await this.#withRow(
      reference === undefined ? await this.#newest({}) : await this.#named(reference),
    );
  }

  /** Without a reference only sandboxes that were made with `up` count. */
  async findForTask(reference: string | undefined): Promise<FoundRun> {
    return await this.#withRow(
      reference === undefined ? await this.#newest({ [IMPLICIT_LABEL]: "no" }) : await this.#named(reference),
    );
  }

  async #named(reference: string): Promise<SandboxRecord> {
    try {
      return await this.#deps.resolver.resolve(reference);
    } catch (thrown) {
      if (!isAidoError(thrown, "CONTAINER_NOT_FOUND")) throw thrown;
      const labels = { [RUN_LABEL]: READY, [SPEC_LABEL]: reference };
      const [newest] = await this.#deps.store.sandboxes.list({ labels, limit: 1 });
      if (newest === undefined) throw thrown;
      return newest;
    }
  }

  async #newest(labels: Readonly<Record<string, string>>): Promise<SandboxRecord> {
    const query = { labels: { [RUN_LABEL]: READY, ...labels }, limit: 1 };
    const [newest] = await this.#deps.store.sandboxes.list(query);
    if (newest !== undefined) return newest;
    throw new AidoError("CONTAINER_NOT_FOUND", "There is no sandbox to run in yet", {
      hint: "`aido sandbox up` makes one from ./sandbox.yaml, `aido run task.py` one for that task.",
    });
  }

  async #withRow(sandbox: SandboxRecord): Promise<FoundRun> {
    const row = await this.#deps.store.runs.get(sandbox.id);
    if (row !== undefined) return { sandbox, row };
    throw new AidoError("EXECUTION_CONFLICT", `Sandbox ${sandbox.id} was not made for runs`, {
      hint: `\`aido exec ${sandbox.id} -- …\` runs a command in it; \`aido sandbox up\` makes one for runs.`,
      details: { sandboxId: sandbox.id },
    });
  }
}
