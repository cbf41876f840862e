import type { Execs } from "@aido/sdk";
import type { JobInfo, JobName } from "@aido/sdk/protocol";
import { describeJobs, parseJob } from "@aido/sdk/schemas";
import { z } from "zod";
import { SandboxTokens } from "../core/access/sandbox-tokens.ts";
import type { Clock } from "../core/clock.ts";
import type { JobCaller } from "../core/job/job-caller.ts";
import { jobHandlers } from "../core/job/job-handlers.ts";
import { JobService } from "../core/job/job-service.ts";
import type { ActiveSessions } from "../core/metrics/active-sessions.ts";
import type { ProcessIdentity } from "../core/process-identity.ts";
import type { SandboxService } from "../core/sandbox/sandbox-service.ts";
import type { Store } from "../core/store/store.ts";
import { validationError } from "../http/error-reply.ts";

export interface JobParts {
  sandboxes: SandboxService;
  execs: Execs;
  sessions: ActiveSessions;
  store: Store;
  clock: Clock;
  processes: ProcessIdentity;
}

/** The jobs on the services they use. */
export function openJobs(parts: JobParts): JobService {
  const { sandboxes, execs, sessions, store, clock, processes } = parts;
  const handlers = jobHandlers({ sandboxes, execs, sessions, tokens: new SandboxTokens(store.sandboxes) });
  return new JobService({
    handlers,
    parse,
    describe: () => describeJobs() as JobInfo[],
    local: localCaller(sandboxes),
    store,
    clock,
    processes,
  });
}

/** Whoever may open the data directory is the operator. */
function localCaller(sandboxes: SandboxService): JobCaller {
  return {
    owner: "local",
    isOperator: true,
    isInternal: false,
    find: (id) => sandboxes.resolve(id),
    create: (request, options) => sandboxes.create(request, options),
  };
}

function parse(name: JobName, request: unknown): unknown {
  try {
    return parseJob(name, request);
  } catch (thrown) {
    throw thrown instanceof z.ZodError ? validationError(thrown) : thrown;
  }
}
