import { ISOLATIONS } from "@aido/sdk/protocol";
import { WORKER_AGENTS } from "../messages/adapter-environment.ts";
import { STORY_STATUSES } from "../tasks/task-file.ts";
import type { SwarmDirectory } from "./swarm-directory.ts";
import type { WorkerRecord } from "./worker-record.ts";

/** One file for each worker, `.aimi/swarm/<worker>.json`. One that is lost or not ours is as none. */
export class WorkerRecords {
  readonly #directory: SwarmDirectory;

  constructor(directory: SwarmDirectory) {
    this.#directory = directory;
  }

  async read(swarmId: string, worker: string): Promise<WorkerRecord | undefined> {
    const value = await this.#directory.readJson(fileOf(worker));
    if (!isRecordShaped(value) || value.swarmId !== swarmId || value.worker !== worker) return undefined;
    return value;
  }

  async write(record: WorkerRecord): Promise<void> {
    await this.#directory.writeJson(fileOf(record.worker), record);
  }

  async remove(worker: string): Promise<void> {
    await this.#directory.remove(fileOf(worker));
  }
}

const fileOf = (worker: string) => `${worker}.json`;

function isRecordShaped(value: unknown): value is WorkerRecord {
  const record = value as WorkerRecord;
  try {
    return (
      [record.swarmId, record.worker].every(isText) &&
      ISOLATIONS.includes(record.plan.isolation) &&
      [undefined, "string"].includes(
        typeof record.plan.image === "undefined" ? undefined : typeof record.plan.image,
      ) &&
      WORKER_AGENTS.includes(record.plan.agent.agent) &&
      (record.plan.agent.argv ?? []).every(isText) &&
      record.plan.envNames.every(isText) &&
      [record.plan.silenceMs, record.stdoutOffset, record.stderrOffset].every(isCount) &&
      [record.seconds ?? 0, record.secondsBefore ?? 0].every(isCount) &&
      Object.values(record.stories).every((status) => STORY_STATUSES.includes(status)) &&
      [record.usage, record.usedBefore].every((usage) =>
        [usage.turns, usage.inputTokens, usage.outputTokens].every(isCount),
      ) &&
      [...record.changedFiles, ...record.lastLines].every(isText)
    );
  } catch {
    return false;
  }
}

const isText = (value: unknown) => typeof value === "string";
const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
