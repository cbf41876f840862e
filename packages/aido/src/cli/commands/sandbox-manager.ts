import { resolve } from "node:path";
import { AidoError, ISOLATIONS, type Isolation, isAidoError } from "@aido/sdk/protocol";
import { UNKNOWN_SWARM_ID } from "../../core/swarm/messages/message.ts";
import { checkContainerName } from "../../core/swarm/state/check-container.ts";
import { SwarmStateFile } from "../../core/swarm/state/swarm-state-file.ts";
import { readWorkerLimits } from "../../core/swarm/workers/worker-limits.ts";
import type { WorkerInfo, Workers } from "../../core/swarm/workers/workers.ts";
import type { CliContext } from "../context.ts";
import { printableJson } from "../output/printable.ts";
import { interruptible } from "./interrupt.ts";

export interface CreateOptions {
  isolation?: string;
  dir?: string;
}

export interface CreateArguments {
  name: string;
  image: string;
  taskFilePath?: string | undefined;
  branchName?: string | undefined;
}

const GIB = 1024 ** 3;
const MIB = 1024 ** 2;

export async function createWorker(
  context: CliContext,
  given: CreateArguments,
  options: CreateOptions,
): Promise<number> {
  const name = checkContainerName(given.name);
  const isolation = readIsolation(options.isolation);
  const limits = readWorkerLimits(context.env);
  return await withWorkers(context, async (workers, signal) => {
    const swarmId = await findSwarmId(resolve(context.cwd, options.dir ?? "."), signal);
    const { taskFilePath = "", branchName = "", image } = given;
    const request = { name, image, taskFilePath, branchName, swarmId, isolation, limits };
    const { containerId, network } = await workers.create(request, signal);
    const { runtime = isolation } = await workers.status(name, signal);
    const resources = {
      cpus: limits.cpus,
      memory: sizeText(limits.memoryBytes),
      swap: sizeText(limits.memoryAndSwapBytes),
    };
    return { containerId, name, image, network, runtime, resources };
  });
}

export async function workerStatus(context: CliContext, given: string): Promise<number> {
  const name = checkContainerName(given);
  return await withWorkers(context, async (workers, signal) => {
    const info = await workers.status(name, signal);
    if (!info.exists) return { name, exists: false, swarmState: info.swarmState };
    const { exists, dockerState, swarmState, image, exitCode, startedAt, finishedAt } = info;
    return {
      ...{ name, exists, dockerState, swarmState, exitCode: exitCode ?? null, image },
      ...{ startedAt: startedAt ?? null, finishedAt: finishedAt ?? null },
    };
  });
}

export async function removeWorker(context: CliContext, given: string): Promise<number> {
  const name = checkContainerName(given);
  return await withWorkers(context, async (workers) => {
    await workers.remove(name);
    return { name, removed: true };
  });
}

export async function listWorkers(context: CliContext): Promise<number> {
  return await withWorkers(context, async (workers, signal) => {
    const containers = (await workers.list(signal)).map((worker) => ({
      name: worker.name,
      status: worker.swarmState,
      created: worker.createdAt ?? null,
      taskFile: worker.taskFilePath ?? null,
    }));
    return { containers };
  });
}

/** Those that have ended, and what is left of those whose container is gone; a paused one may go on. */
export async function cleanUpWorkers(context: CliContext): Promise<number> {
  return await withWorkers(context, async (workers, signal) => {
    const ended = (await workers.list(signal)).filter(hasEnded);
    for (const { name } of ended) await workers.remove(name);
    return { removed: ended.length, containers: ended.map(({ name }) => name) };
  });
}

export async function checkWorkerRuntime(
  context: CliContext,
  options: { isolation?: string },
): Promise<number> {
  const isolation = readIsolation(options.isolation);
  return await withWorkers(context, async (workers, signal) => {
    await workers.checkRuntime(isolation, signal);
    const runtime = { sysbox: "sysbox-runc", gvisor: "runsc", kata: "kata-runtime", container: "default" };
    return { available: true, runtime: runtime[isolation] };
  });
}

function hasEnded({ exists, swarmState, dockerState }: WorkerInfo): boolean {
  return !exists || (dockerState !== "paused" && ["completed", "failed", "stopped"].includes(swarmState));
}

/** Never chosen by what the machine has: who wants a weaker one says so. */
function readIsolation(given = "sysbox"): Isolation {
  const isolation = ISOLATIONS.find((each) => each === given);
  if (isolation !== undefined) return isolation;
  throw new AidoError("VALIDATION_ERROR", `There is no isolation ${JSON.stringify(given.slice(0, 80))}`, {
    hint: `Choose one of ${ISOLATIONS.join(", ")}.`,
  });
}

/** A worker may be made before there is a swarm. */
async function findSwarmId(project: string, signal: AbortSignal): Promise<string> {
  try {
    return (await new SwarmStateFile({ project, signal }).read()).swarmId;
  } catch (thrown) {
    if (isAidoError(thrown, "SWARM_NOT_FOUND")) return UNKNOWN_SWARM_ID;
    throw thrown;
  }
}

/** As the engine's own tools write sizes. */
function sizeText(bytes: number): string {
  if (bytes % GIB === 0) return `${bytes / GIB}g`;
  return bytes % MIB === 0 ? `${bytes / MIB}m` : `${bytes}`;
}

/** JSON with and without `--json`: these commands are made for scripts. */
async function withWorkers(
  context: CliContext,
  work: (workers: Workers, signal: AbortSignal) => Promise<object>,
): Promise<number> {
  return await interruptible(context, async (signal) => {
    const answer = await context.withWorkers((workers) => work(workers, signal));
    await context.stdout.write(`${printableJson(answer, 2)}\n`);
    return 0;
  });
}
