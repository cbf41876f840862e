import type { Sandboxes } from "@aido/sdk";
import {
  AidoError,
  type JobName,
  type Parsed,
  type SandboxCreateRequest,
  toAidoError,
} from "@aido/sdk/protocol";
import { findSidecar, toSandboxId } from "../job/find-sidecar.ts";
import { createOne } from "../job/handlers/sandbox-create.ts";
import type { JobCaller } from "../job/job-caller.ts";
import type { HandlerDeps } from "../job/job-handler.ts";
import { toCreateSandbox } from "../job/to-create-sandbox.ts";
import type { Logger } from "../logger.ts";
import type { WorkflowRecord } from "./workflow-store.ts";

/** Which run a sandbox was made for. Never shown, never set by a caller. */
const RUN_LABEL = "dev.aido.workflow-run";
const DESTROY_LIMIT_MS = 60_000;

export interface WorkflowSandboxDeps extends Pick<HandlerDeps, "ssh"> {
  readonly sandboxes: HandlerDeps["sandboxes"] & Pick<Sandboxes, "list">;
  readonly tokens: HandlerDeps["tokens"] & {
    hash(token: string): string;
    /** Whether what hashes to this still opens the sandbox. */
    verifyHash(sandboxId: string, hash: string): Promise<boolean>;
  };
  readonly parse: (name: JobName, request: unknown) => unknown;
  /** On whose behalf a workflow runs when nobody is there to ask. */
  readonly callerOf: (workflow: Pick<WorkflowRecord, "owner" | "isOperator">) => JobCaller;
  readonly logger: Logger;
}

/** Where workflows run: in a sandbox that is there, or in one for each run that goes with it. */
export class WorkflowSandboxes {
  readonly #deps: WorkflowSandboxDeps;

  constructor(deps: WorkflowSandboxDeps) {
    this.#deps = deps;
  }

  /** Checks a token once and keeps its hash alone: it is written nowhere. */
  async existing(caller: JobCaller, sidecarUrl: string, sidecarToken: string) {
    const context = { caller, signal: new AbortController().signal };
    const { id } = await findSidecar(this.#deps, context, { sidecarUrl, sidecarToken });
    const token = sidecarToken.trim();
    return { sandboxId: id, tokenHash: token === "" ? undefined : this.#deps.tokens.hash(token) };
  }

  /** Raises what is wrong with a `sandbox_config_json`. */
  read(json: string): Parsed<SandboxCreateRequest> {
    let value: unknown;
    try {
      value = json.trim() === "" ? {} : JSON.parse(json);
    } catch {
      throw invalid("sandbox_config_json is not JSON");
    }
    const config = this.#deps.parse("SANDBOX_CREATE", value) as Parsed<SandboxCreateRequest>;
    if (config.sidecarToken.trim() !== "") {
      throw invalid("A sandbox that is made for a run has a token of its own: leave sidecar_token out");
    }
    toCreateSandbox(config);
    return config;
  }

  async use(
    workflow: WorkflowRecord,
    runId: string,
    signal: AbortSignal,
    work: (sandboxId: string) => Promise<void>,
  ): Promise<void> {
    const caller = this.#deps.callerOf(workflow);
    if (workflow.sandboxId !== undefined) {
      const { id } = await caller.find(toSandboxId(workflow.sandboxId));
      const { tokenHash } = workflow;
      if (tokenHash !== undefined && !(await this.#deps.tokens.verifyHash(id, tokenHash))) throw changed(id);
      return await work(id);
    }
    const config = this.read(workflow.sandboxConfigJson);
    try {
      const made = await createOne(this.#deps, config, { caller, signal }, { [RUN_LABEL]: runId });
      await work(made.sandboxId);
    } finally {
      // One that is left is found by its label when its life ends; what the run came to does not depend on it.
      await this.remove(runId).catch((thrown: unknown) => {
        const { code, message } = toAidoError(thrown);
        this.#deps.logger.warn({ event: "workflow.remove", runId, code, message }, "sandbox not removed");
      });
    }
  }

  /** Removes what was made for a run, however far that came. */
  async remove(runId: string): Promise<void> {
    const { sandboxes } = this.#deps;
    for (const { id } of await sandboxes.list({ labels: { [RUN_LABEL]: runId } })) {
      await sandboxes.destroy(id, AbortSignal.timeout(DESTROY_LIMIT_MS));
    }
  }
}

function invalid(message: string): AidoError {
  return new AidoError("VALIDATION_ERROR", message, { details: { field: "sandboxConfigJson" } });
}

function changed(sandboxId: string): AidoError {
  return new AidoError("FORBIDDEN", "Unauthorized sidecar_token", {
    hint: "The sandbox has another token since; make the workflow again with that one.",
    details: { sandboxId },
  });
}
