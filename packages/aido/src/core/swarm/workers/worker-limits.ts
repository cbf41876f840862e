import { AidoError } from "@aido/sdk/protocol";
import type { WorkerLimits } from "./workers.ts";

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const UNITS: Readonly<Record<string, number>> = { b: 1, k: 1024, m: MIB, g: GIB, t: 1024 ** 4 };
const SIZE = /^(\d+(?:\.\d+)?)([bkmgt])?(?:i?b)?$/i;
/** The engine takes no less. */
const LEAST_MEMORY = 6 * MIB;
const MOST_CPUS = 1024;

export const DEFAULT_WORKER_LIMITS: WorkerLimits = {
  cpus: 2,
  memoryBytes: 4 * GIB,
  memoryAndSwapBytes: 8 * GIB,
  diskBytes: 8 * GIB,
};

type Environment = Readonly<Record<string, string | undefined>>;

/** What the environment says of a worker's limits; a variable that is empty says nothing. */
export function readWorkerLimits(env: Environment): WorkerLimits {
  const defaults = DEFAULT_WORKER_LIMITS;
  const memoryBytes = readSize(env, "AIMI_SANDBOX_MEMORY") ?? defaults.memoryBytes;
  if (memoryBytes < LEAST_MEMORY) throw invalid(env, "AIMI_SANDBOX_MEMORY", "at least 6m");
  const memoryAndSwapBytes =
    readSize(env, "AIMI_SANDBOX_SWAP") ?? Math.max(defaults.memoryAndSwapBytes, memoryBytes);
  if (memoryAndSwapBytes < memoryBytes) {
    throw invalid(env, "AIMI_SANDBOX_SWAP", "memory and swap together, so no less than AIMI_SANDBOX_MEMORY");
  }
  return {
    cpus: readCpus(env) ?? defaults.cpus,
    memoryBytes,
    memoryAndSwapBytes,
    diskBytes: readSize(env, "AIMI_SANDBOX_DISK") ?? defaults.diskBytes,
  };
}

function readCpus(env: Environment): number | undefined {
  const text = env["AIMI_SANDBOX_CPUS"]?.trim();
  if (text === undefined || text === "") return undefined;
  const cpus = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (!(cpus >= 0.01 && cpus <= MOST_CPUS)) {
    throw invalid(env, "AIMI_SANDBOX_CPUS", `a number of processors from 0.01 to ${MOST_CPUS}, such as 1.5`);
  }
  return cpus;
}

function readSize(env: Environment, name: string): number | undefined {
  const text = env[name]?.trim();
  if (text === undefined || text === "") return undefined;
  const [, number, unit = "b"] = SIZE.exec(text) ?? [];
  const bytes = Math.floor(Number(number) * (UNITS[unit.toLowerCase()] ?? Number.NaN));
  if (!(bytes > 0 && bytes <= Number.MAX_SAFE_INTEGER)) throw invalid(env, name, "a size such as 512m or 4g");
  return bytes;
}

function invalid(env: Environment, name: string, rule: string): AidoError {
  const given = JSON.stringify((env[name] ?? "").slice(0, 100));
  return new AidoError("VALIDATION_ERROR", `Invalid ${name}: ${given} (${rule})`, {
    hint: `Set ${name} anew, or unset it for what is usual.`,
    details: { field: name },
  });
}
