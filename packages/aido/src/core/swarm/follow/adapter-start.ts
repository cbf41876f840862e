import { AidoError } from "@aido/sdk/protocol";
import { toAdapterEnvironment } from "../messages/adapter-environment.ts";
import { formatMessage } from "../messages/parse-message.ts";
import type { WorkerRecord } from "../records/worker-record.ts";
import type { SwarmContainer } from "../state/swarm-state.ts";
import type { WorkerSurroundings } from "../swarm-deps.ts";
import type { AdapterStart } from "../workers/workers.ts";
import { leftOf } from "./budgets.ts";

/** Given to every agent where they are set; all others have to be asked for by name. */
const PASSED = [
  ...["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"],
  ...["GITHUB_TOKEN", "GITHUB_API_URL", "AIMI_GIT_TOKEN_HOSTS"],
];

/** What the adapter of a worker is started with. */
export function adapterStart(
  swarmId: string,
  entry: SwarmContainer,
  { record, surroundings, now }: { record: WorkerRecord; surroundings: WorkerSurroundings; now: Date },
): AdapterStart {
  const { plan, usedBefore, secondsBefore = 0 } = record;
  const request = {
    type: "task-request",
    timestamp: now.toISOString(),
    swarmId,
    containerId: entry.containerId,
    payload: {
      taskFilePath: entry.taskFilePath,
      branchName: entry.branchName,
      repoUrl: surroundings.repoUrl,
      envVars: {},
    },
  } as const;
  formatMessage(request);
  return {
    request,
    env: {
      ...passedOn(surroundings.env, plan.envNames),
      ...toAdapterEnvironment({ ...plan.agent, ...leftOf(plan.agent, usedBefore, secondsBefore) }),
      IS_SANDBOX: "1",
      AIMI_BRANCH: entry.branchName,
      CONTAINER_ID: entry.containerId,
      SWARM_ID: swarmId,
    },
  };
}

function passedOn(env: WorkerSurroundings["env"], names: readonly string[]): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const name of PASSED) {
    const value = env[name];
    if (value !== undefined && value !== "") passed[name] = value;
  }
  for (const name of names) {
    const value = env[name];
    if (value === undefined) {
      throw new AidoError("VALIDATION_ERROR", `The variable ${name} for the worker is not set`, {
        hint: `Set it, or leave --env ${name} away.`,
        details: { option: "--env", name },
      });
    }
    passed[name] = value;
  }
  return passed;
}
