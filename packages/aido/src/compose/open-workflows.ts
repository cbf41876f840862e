import { AidoError, isAidoError, toAidoError } from "@aido/sdk/protocol";
import { parseCronTrigger, parseWorkflow } from "@aido/sdk/schemas";
import { z } from "zod";
import type { SandboxTokens } from "../core/access/sandbox-tokens.ts";
import type { JobCaller } from "../core/job/job-caller.ts";
import { type CronSchedule, gapMs } from "../core/workflow/cron-schedule.ts";
import { type WorkflowSandboxDeps, WorkflowSandboxes } from "../core/workflow/workflow-sandboxes.ts";
import { WorkflowService } from "../core/workflow/workflow-service.ts";
import { validationError } from "../http/error-reply.ts";
import { ownerLabels } from "../http/ownership.ts";
import type { JobParts } from "./open-jobs.ts";

const LEAST_LATE_MS = 60_000;
const LONGEST_SLEEP_MS = 60 * 60_000;

export interface WorkflowParts extends JobParts {
  tokens: SandboxTokens;
  parse: WorkflowSandboxDeps["parse"];
}

export function openWorkflows(parts: WorkflowParts): WorkflowService {
  const { config, clock, evidence, sandboxes } = parts;
  return new WorkflowService({
    ...parts,
    sandboxes: new WorkflowSandboxes({ ...parts, sandboxes, callerOf: callers(parts) }),
    readCron,
    readTask: (json) => checked("workflowJson", () => parseWorkflow(parseJson(json))),
    readTrigger: (trigger) => checked("triggerConfig", () => parseCronTrigger(trigger)),
    flushEvidence: () => evidence.flush(),
    missedAfterMs: async () => {
      if (config.workflowSchedule === "off") return LEAST_LATE_MS;
      return Math.max(LEAST_LATE_MS, 2 * gapMs(await readTick(config.workflowSchedule), clock.now()));
    },
  });
}

/** How long to wait for the next look at what is due. Long waits are cut short, because clocks are set. */
export async function workflowTick(schedule: string): Promise<(now: Date) => number> {
  const tick = await readTick(schedule);
  return (now) => Math.min(LONGEST_SLEEP_MS, (tick.next(now)?.getTime() ?? Infinity) - now.getTime());
}

/** The library is loaded with the first schedule: most jobs have none. */
async function readCron(cron: string, timezone: string): Promise<CronSchedule> {
  return (await import("../cron/croner-schedules.ts")).readCron(cron, timezone);
}

async function readTick(schedule: string): Promise<CronSchedule> {
  try {
    return await readCron(schedule, "UTC");
  } catch (thrown) {
    const { message, hint } = toAidoError(thrown);
    throw new AidoError("INVALID_CONFIG", `workflowSchedule: ${message}`, { hint, cause: thrown });
  }
}

/** Nobody is there when a schedule begins a run: it may use and have what its owner may. */
function callers({ sandboxes }: WorkflowParts): WorkflowSandboxDeps["callerOf"] {
  return ({ owner, isOperator }): JobCaller => ({
    owner,
    isOperator,
    isInternal: true,
    find: async (id) => {
      const sandbox = await sandboxes.resolve(id, isOperator ? undefined : owner).catch((thrown: unknown) => {
        if (isAidoError(thrown, "CONTAINER_NOT_FOUND")) return undefined;
        throw thrown;
      });
      if (sandbox !== undefined) return sandbox;
      throw new AidoError("CONTAINER_NOT_FOUND", `There is no sandbox ${id}`, {
        hint: "Make the workflow again with a sandbox that is there.",
      });
    },
    create: (request, options) =>
      sandboxes.create({ ...request, labels: { ...request.labels, ...ownerLabels({ owner }) } }, options),
  });
}

function checked<Value>(field: string, read: () => Value): Value {
  try {
    return read();
  } catch (thrown) {
    if (!(thrown instanceof z.ZodError)) throw thrown;
    const { message, hint, details } = validationError(thrown);
    throw new AidoError("VALIDATION_ERROR", `${field}: ${message}`, {
      hint,
      details: { ...details, field },
      cause: thrown,
    });
  }
}

function parseJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw new AidoError("VALIDATION_ERROR", "workflow_json is not JSON", {
      hint: 'Such as {"prompt":"…"} or {"steps":[{"command":"…"}]}.',
      details: { field: "workflowJson" },
    });
  }
}
