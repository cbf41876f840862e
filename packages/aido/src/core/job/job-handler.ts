import type { Agents, Execs, Sandboxes } from "@aido/sdk";
import type { JobName, JobTypes, Parsed } from "@aido/sdk/protocol";
import type { Activity } from "../activity/activity.ts";
import type { BatchService } from "../batch/batch-service.ts";
import type { WorkflowService } from "../workflow/workflow-service.ts";
import type { JobCaller } from "./job-caller.ts";

export interface JobContext {
  readonly caller: JobCaller;
  readonly signal: AbortSignal;
  /** The id of the workflow that this makes, where it is not aido that chooses it. */
  readonly workflowId?: number | undefined;
}

/** One job: a checked request becomes a result, or an error is raised. */
export type JobHandler<Name extends JobName> = (
  request: Parsed<JobTypes[Name]["request"]>,
  context: JobContext,
) => Promise<JobTypes[Name]["result"]>;

/** Jobs that this aido can do; one that is missing is refused as unsupported. */
export type JobHandlers = { readonly [Name in JobName]?: JobHandler<Name> };

/** What the handlers work with. What is left out makes the jobs that need it unsupported. */
export interface HandlerDeps {
  readonly sandboxes: Pick<Sandboxes, "start" | "stop" | "destroy">;
  readonly execs: Execs;
  readonly tokens: { verify(sandboxId: string, token: string): Promise<boolean> };
  readonly activity: Pick<Activity, "begin">;
  readonly batches: BatchService;
  readonly agents?: JobAgents | undefined;
  readonly snapshots?: JobSnapshots | undefined;
  readonly ssh?: JobSsh | undefined;
  readonly workflows?: WorkflowService | undefined;
  /** This operator's address, where several share the work. */
  readonly operatorAddress?: string | undefined;
}

/** What prompts and tasks need of the agents in sandboxes. */
export type JobAgents = Pick<Agents, "run">;

export interface JobSnapshots {
  take(
    sandboxId: string,
    options: {
      destination?: string | undefined;
      includeWorkspace: boolean;
      includeState: boolean;
      signal?: AbortSignal | undefined;
    },
  ): Promise<{ url: string; sha256: string; bytes: number; createdAt: Date }>;
}

/** Log-in by key. An empty user name is the sandbox's own user. */
export interface JobSsh {
  /** Where sandboxes are logged in to; undefined when no server listens for it. */
  port(): Promise<number | undefined>;
  addKey(sandboxId: string, key: { publicKey: string; username?: string | undefined }): Promise<unknown>;
  removeKey(sandboxId: string, key: { key: string; username?: string | undefined }): Promise<boolean>;
}
