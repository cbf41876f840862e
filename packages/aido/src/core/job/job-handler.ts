import type { Execs, Sandboxes } from "@aido/sdk";
import type { JobName, JobTypes, Parsed } from "@aido/sdk/protocol";
import type { ActiveSessions } from "../metrics/active-sessions.ts";
import type { JobCaller } from "./job-caller.ts";

export interface JobContext {
  readonly caller: JobCaller;
  readonly signal: AbortSignal;
}

/** One job: a checked request becomes a result, or an error is raised. */
export type JobHandler<Name extends JobName> = (
  request: Parsed<JobTypes[Name]["request"]>,
  context: JobContext,
) => Promise<JobTypes[Name]["result"]>;

/** Jobs that this aido can do; one that is missing is refused as unsupported. */
export type JobHandlers = { readonly [Name in JobName]?: JobHandler<Name> };

/** What the handlers work with. */
export interface HandlerDeps {
  readonly sandboxes: Pick<Sandboxes, "start" | "stop" | "destroy">;
  readonly execs: Execs;
  readonly tokens: { verify(sandboxId: string, token: string): Promise<boolean> };
  readonly sessions: ActiveSessions;
}
