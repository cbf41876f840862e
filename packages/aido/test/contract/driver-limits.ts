import { expect, test } from "vitest";
import { IS_CI } from "../backends/is-ci.ts";
import { type DriverSuite, until } from "./driver-backend.ts";
import { launch } from "./launch.ts";

const MIB = 1_048_576;
/** Doubles a variable until there is no memory left. */
const EAT_MEMORY = "x=0123456789abcdef; while true; do x=$x$x; done";

export function limitsContract({ make }: DriverSuite): void {
  test("S0-46 S3-7 S3-33 S3-58 a command that takes more memory than the limit is killed, and that is told", async ({
    skip,
  }) => {
    await using backend = await make();
    skip(!IS_CI && !(await backend.driver.capabilities()).enforced.memory, "memory is not enforced here");
    const { sh, client, id } = await launch(backend, { limits: limits({ memoryBytes: 64 * MIB }) });
    const eaten = await sh(EAT_MEMORY);
    expect(eaten.exitCode).not.toBe(0);
    expect(eaten.outOfMemory).toBe(true);
    expect(await client.ping(1)).toBe(1);
    expect(await backend.driver.inspect(id)).toMatchObject({ state: "running" });
    expect((await sh("echo still here")).stdout).toBe("still here\n");
  });

  test("the number of processes is bounded, and the sandbox answers afterwards", async ({ skip }) => {
    await using backend = await make();
    skip(!IS_CI && !(await backend.driver.capabilities()).enforced.pids, "processes are not counted here");
    const { sh, client, id } = await launch(backend, { limits: limits({ pids: 24 }) });
    const forked = await sh("i=0; while [ $i -lt 60 ]; do sleep 30 & i=$((i+1)); done; echo all");
    expect(forked.stdout).not.toBe("all\n");
    expect((await backend.driver.usage(id)).pids).toBeLessThanOrEqual(24);
    expect(await client.ping(1)).toBe(1);
  });

  test("S3-33 S3-58 the processor share is bounded", async ({ skip }) => {
    await using backend = await make();
    skip(
      !IS_CI && !(await backend.driver.capabilities()).enforced.cpus,
      "processor time is not bounded here",
    );
    const { client, id } = await launch(backend, { limits: limits({ cpus: 0.2 }) });
    const before = (await backend.driver.usage(id)).cpuMs;
    const started = performance.now();
    await client.exec(["/bin/sh", "-c", "while true; do :; done"], { timeoutMs: 1_500 });
    const wallMs = performance.now() - started;
    const usedMs = (await backend.driver.usage(id)).cpuMs - before;
    // A fifth of a processor over the time that passed, with room for the periods at both ends.
    expect(usedMs).toBeLessThan(wallMs * 0.2 + 250);
    expect(usedMs).toBeGreaterThan(50);
  });

  test("open files are bounded", async () => {
    await using backend = await make();
    const { sh } = await launch(backend, { limits: limits({ openFiles: 77 }) });
    expect((await sh("ulimit -n; ulimit -c")).stdout).toBe("77\n0\n");
  });

  test("S3-7 S3-30 S3-71 usage counts memory, processor time and processes", async () => {
    await using backend = await make();
    const { client, id } = await launch(backend);
    const idle = await backend.driver.usage(id);
    expect(idle.memoryBytes).toBeGreaterThan(0);
    expect(idle.memoryBytes).toBeLessThan(128 * MIB);
    client.start(["/bin/sh", "-c", "x=0; while [ $x -lt 1000000 ]; do x=$((x+1)); done; sleep 60"]);
    await until(
      "its processor time is seen",
      async () => (await backend.driver.usage(id)).cpuMs > idle.cpuMs + 20,
    );
    expect((await backend.driver.usage(id)).pids).toBeGreaterThan(idle.pids);
  });
}

function limits(changes: object) {
  return {
    cpus: 1,
    memoryBytes: 128 * MIB,
    pids: 64,
    diskBytes: 0,
    openFiles: 1024,
    outputBytes: 0,
    ...changes,
  };
}
