import type { Execs } from "@aido/sdk";
import type { JobInfo, JobName } from "@aido/sdk/protocol";
import { describeJobs, parseJob } from "@aido/sdk/schemas";
import { z } from "zod";
import type { Config } from "../config/config.ts";
import { SandboxTokens } from "../core/access/sandbox-tokens.ts";
import type { Activity } from "../core/activity/activity.ts";
import { BatchService } from "../core/batch/batch-service.ts";
import type { Clock } from "../core/clock.ts";
import type { EvidenceLog } from "../core/evidence/evidence-log.ts";
import type { OpenJobs } from "../core/job/deferred-jobs.ts";
import type { JobCaller } from "../core/job/job-caller.ts";
import type { HandlerDeps } from "../core/job/job-handler.ts";
import { jobHandlers } from "../core/job/job-handlers.ts";
import { JobService } from "../core/job/job-service.ts";
import type { Logger } from "../core/logger.ts";
import type { Presence } from "../core/process-presence.ts";
import type { SandboxService } from "../core/sandbox/sandbox-service.ts";
import type { Store } from "../core/store/store.ts";
import { validationError } from "../http/error-reply.ts";
import { openWorkflows } from "./open-workflows.ts";

export interface JobParts extends Pick<HandlerDeps, "agents" | "snapshots" | "ssh"> {
  config: Config;
  sandboxes: SandboxService;
  execs: Execs;
  evidence: EvidenceLog;
  activity: Activity;
  store: Store;
  clock: Clock;
  presence: Presence;
  logger: Logger;
}

/** The jobs on the services they use. */
export function openJobs(parts: JobParts): OpenJobs {
  const { config, sandboxes, store, clock, presence, logger } = parts;
  const batches = new BatchService({ store, clock, presence, logger, ttlMs: config.batchTtlMs });
  const tokens = new SandboxTokens(store.sandboxes);
  const workflows = openWorkflows({ ...parts, tokens, parse });
  const handlers = jobHandlers({
    ...parts,
    batches,
    workflows,
    tokens,
    operatorAddress: config.operatorAddress,
  });
  const local = localCaller(sandboxes);
  const describe = () => describeJobs() as JobInfo[];
  const jobs = new JobService({ handlers, parse, describe, local, store, clock, presence });
  return { jobs, batches, workflows, local };
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
