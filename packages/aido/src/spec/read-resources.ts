import type { ResourceLimits } from "@aido/sdk/protocol";
import { readDuration } from "./read-duration.ts";
import type { SpecReader, SpecValue } from "./spec-reader.ts";
import { parseSize } from "./units.ts";

const KEYS = ["cpu", "memory", "pids", "disk", "output", "openFiles", "timeout"];
const MIN_MEMORY_BYTES = 6 * 1024 ** 2;

export function readResources(
  reader: SpecReader,
  value: SpecValue,
): { limits?: Partial<ResourceLimits>; timeoutMs?: number | undefined } {
  const keys = reader.map(value, KEYS);
  if (keys === undefined) return {};
  const read = <T>(key: string, how: (reader: SpecReader, value: SpecValue) => T): T | undefined => {
    const found = keys.get(key);
    return found === undefined ? undefined : how(reader, found);
  };
  const all = {
    cpus: read("cpu", readCpu),
    memoryBytes: read("memory", readMemory),
    pids: read("pids", readPids),
    diskBytes: read("disk", readSize),
    outputBytes: read("output", readSize),
    openFiles: read("openFiles", readOpenFiles),
  };
  const limits = Object.fromEntries(Object.entries(all).filter(([, limit]) => limit !== undefined));
  return { limits, timeoutMs: read("timeout", readDuration) };
}

function readCpu(reader: SpecReader, value: SpecValue): number | undefined {
  const text = reader.written(value, "cpu: 0.5");
  if (text === undefined) return undefined;
  const cpus = /^[0-9]+(\.[0-9]+)?$/.test(text) ? Number(text) : Number.NaN;
  if (cpus >= 0.01 && cpus <= 1024) return cpus;
  reader.problem(
    value,
    `${value.path} must be a number of processors from 0.01`,
    "Write for example cpu: 0.5.",
  );
  return undefined;
}

function readMemory(reader: SpecReader, value: SpecValue): number | undefined {
  const bytes = readSize(reader, value);
  if (bytes === undefined || bytes >= MIN_MEMORY_BYTES) return bytes;
  reader.problem(
    value,
    `${value.path} is less than 6 MiB, in which nothing starts`,
    "Write for example memory: 512m.",
  );
  return undefined;
}

function readSize(reader: SpecReader, value: SpecValue): number | undefined {
  const key = value.path.split(".").at(-1) ?? value.path;
  const text = reader.written(value, `${key}: 512m`);
  if (text === undefined) return undefined;
  const bytes = parseSize(text);
  if (bytes !== undefined && bytes > 0 && Number.isSafeInteger(bytes)) return bytes;
  reader.problem(
    value,
    `${value.path} is not a size`,
    `Write a number and k, m or g, for example ${key}: 512m.`,
  );
  return undefined;
}

function readPids(reader: SpecReader, value: SpecValue): number | undefined {
  return readCount(reader, value, { least: 8, most: 4_194_304, example: "pids: 100" });
}

function readOpenFiles(reader: SpecReader, value: SpecValue): number | undefined {
  return readCount(reader, value, { least: 32, most: 1_048_576, example: "openFiles: 4096" });
}

function readCount(
  reader: SpecReader,
  value: SpecValue,
  { least, most, example }: { least: number; most: number; example: string },
): number | undefined {
  const count = reader.scalar(value)?.value;
  if (typeof count === "number" && Number.isInteger(count) && count >= least && count <= most) return count;
  reader.problem(
    value,
    `${value.path} must be a whole number from ${least}`,
    `Write for example ${example}.`,
  );
  return undefined;
}
