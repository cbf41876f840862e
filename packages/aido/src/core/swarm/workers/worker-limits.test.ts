import { describe, expect, test } from "vitest";
import { readWorkerLimits } from "./worker-limits.ts";

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;

describe("S1-67 a worker's limits", () => {
  test("are two processors, 4 GiB of memory, 8 GiB with swap and 8 GiB of disk", () => {
    const usual = { cpus: 2, memoryBytes: 4 * GIB, memoryAndSwapBytes: 8 * GIB, diskBytes: 8 * GIB };
    expect(readWorkerLimits({})).toEqual(usual);
    expect(readWorkerLimits({ AIMI_SANDBOX_MEMORY: " ", AIMI_SANDBOX_CPUS: "" })).toEqual(usual);
  });

  test("are what the environment says", () => {
    const env = {
      AIMI_SANDBOX_CPUS: "1.5",
      AIMI_SANDBOX_MEMORY: "512m",
      AIMI_SANDBOX_SWAP: "1GiB",
      AIMI_SANDBOX_DISK: "1048576",
    };
    expect(readWorkerLimits(env)).toEqual({
      cpus: 1.5,
      memoryBytes: 512 * MIB,
      memoryAndSwapBytes: GIB,
      diskBytes: MIB,
    });
  });

  test("have no swap beyond a memory larger than the usual swap", () => {
    expect(readWorkerLimits({ AIMI_SANDBOX_MEMORY: "16g" }).memoryAndSwapBytes).toBe(16 * GIB);
  });

  test.each([
    ["AIMI_SANDBOX_CPUS", "0"],
    ["AIMI_SANDBOX_CPUS", "two"],
    ["AIMI_SANDBOX_CPUS", "1e9"],
    ["AIMI_SANDBOX_MEMORY", "4 gigs"],
    ["AIMI_SANDBOX_MEMORY", "-1"],
    ["AIMI_SANDBOX_MEMORY", "1m"],
    ["AIMI_SANDBOX_SWAP", "1g"],
    ["AIMI_SANDBOX_DISK", "99999999t"],
    ["AIMI_SANDBOX_DISK", "0"],
  ])("are refused by name when wrong: %s=%s", (name, value) => {
    expect(() => readWorkerLimits({ [name]: value })).toThrow(`Invalid ${name}: "${value}"`);
  });
});
