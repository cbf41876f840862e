import type { ContainerSpec, Driver } from "../../src/core/driver/driver.ts";

/** One backend as the contract sees it. Disposing removes all that its drivers made. */
export interface DriverBackend extends AsyncDisposable {
  readonly driver: Driver;
  /** Has a shell at /bin/sh, unless the suite says that it has none. */
  readonly image: string;
  /** A directory of this test alone, for what is mounted. */
  readonly directory: string;
  /** Another driver on the same scope, as a new process would make it. */
  reopen(): Promise<Driver>;
  /** A driver of another scope on the same backend. */
  otherScope(): Promise<Driver>;
}

export interface DriverSuite {
  readonly make: () => Promise<DriverBackend>;
  /** A command that writes `hello` and a newline to standard output and ends with 0. */
  readonly hello: readonly string[];
  /** False for a backend in memory: no kernel between the sandbox and its host. */
  readonly isolates: boolean;
}

const MIB = 1_048_576;
let made = 0;

/** A fresh id and a spec of a small sandbox. */
export function specOf(backend: DriverBackend, changes: Partial<ContainerSpec> = {}): ContainerSpec {
  made += 1;
  const sandboxId = `sbx_contract${process.pid}x${made}`;
  return {
    sandboxId,
    name: `aido-contract-${process.pid}-${made}`,
    image: backend.image,
    isolation: "container",
    network: "none",
    limits: { cpus: 1, memoryBytes: 128 * MIB, pids: 64, diskBytes: 0, openFiles: 1024, outputBytes: 0 },
    user: undefined,
    workdir: "/work",
    env: {},
    mounts: [],
    labels: { "contract.test": "yes" },
    privileged: false,
    ...changes,
  };
}

/** Polls a condition; a wait without a limit would hang the suite. */
export async function until(
  what: string,
  isTrue: () => boolean | Promise<boolean>,
  limitMs = 20_000,
): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!(await isTrue())) {
    if (performance.now() > deadline) throw new Error(`${what}: not within ${limitMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
