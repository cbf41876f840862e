import type { ProjectSwarm } from "./open-swarm.ts";
import type { SwarmShape } from "./swarm-options.ts";

const FILE = "swarm.json";
const MOST_WORKERS = 100;

/** How a swarm as a whole is run, and for how long it was. */
export interface SwarmRecord {
  readonly shape: SwarmShape;
  readonly seconds: number;
}

/** Undefined when it was lost, is of another swarm or not as it should be: then nothing of it is known. */
export async function readSwarmRecord(
  swarm: ProjectSwarm,
  swarmId: string,
): Promise<SwarmRecord | undefined> {
  const value = (await swarm.directory.readJson(FILE)) as
    | Partial<SwarmRecord & { swarmId: string }>
    | undefined;
  const { shape, seconds } = value ?? {};
  const { maxWorkers, budgets } = shape ?? {};
  const isWhole =
    value?.swarmId === swarmId &&
    isCount(seconds) &&
    isCount(maxWorkers) &&
    maxWorkers >= 1 &&
    maxWorkers <= MOST_WORKERS &&
    budgets !== undefined;
  if (!isWhole) return undefined;
  const { maxTurns, maxTokens, maxSeconds } = budgets;
  if (![maxTurns, maxTokens, maxSeconds].every((each) => each === undefined || isCount(each)))
    return undefined;
  return { shape: { maxWorkers, budgets: { maxTurns, maxTokens, maxSeconds } }, seconds };
}

export async function writeSwarmRecord(
  swarm: ProjectSwarm,
  swarmId: string,
  record: SwarmRecord,
): Promise<void> {
  await swarm.directory.writeJson(FILE, { swarmId, ...record });
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
