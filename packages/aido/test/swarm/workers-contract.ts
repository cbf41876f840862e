import { describe, expect, test } from "vitest";
import type {
  OutputOffsets,
  WorkerEvent,
  WorkerRequest,
  Workers,
} from "../../src/core/swarm/workers/workers.ts";
import { SWARM_ID, startOf, TASK } from "./workers-contract-values.ts";

export interface WorkersBed extends AsyncDisposable {
  readonly workers: Workers;
  readonly image: string;
  /** A name that no other test has. */
  readonly name: string;
  /** The workers as another process has them. */
  another(): Promise<Workers>;
}

const MIB = 1024 ** 2;

export function requestOf(bed: WorkersBed, changes: Partial<WorkerRequest> = {}): WorkerRequest {
  return {
    swarmId: SWARM_ID,
    name: bed.name,
    taskFilePath: ".aimi/tasks/2026-02-16-login-tasks.json",
    branchName: "feat/login",
    image: bed.image,
    isolation: "container",
    limits: { cpus: 1, memoryBytes: 64 * MIB, memoryAndSwapBytes: 96 * MIB, diskBytes: 512 * MIB },
    ...changes,
  };
}

export interface Heard {
  stdout: string;
  stderr: string;
  end: WorkerEvent | undefined;
}

/** Follows to the end, and checks that each byte comes once and in order. */
export async function hear(
  workers: Workers,
  name: string,
  from: OutputOffsets = { stdoutOffset: 0, stderrOffset: 0 },
  signal: AbortSignal = AbortSignal.timeout(60_000),
): Promise<Heard> {
  const parts = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
  const at = { stdout: from.stdoutOffset, stderr: from.stderrOffset };
  let end: WorkerEvent | undefined;
  for await (const event of workers.follow(name, from, signal)) {
    expect(end).toBeUndefined();
    if (event.type === "end") {
      end = event;
      continue;
    }
    expect(event.offset).toBe(at[event.stream]);
    at[event.stream] += event.data.byteLength;
    parts[event.stream].push(Buffer.from(event.data));
  }
  return {
    stdout: Buffer.concat(parts.stdout).toString("latin1"),
    stderr: Buffer.concat(parts.stderr).toString("latin1"),
    end,
  };
}

const ZERO = { stdoutOffset: 0, stderrOffset: 0 };

/** What every implementation of `Workers` keeps. */
export function workersContract(make: () => Promise<WorkersBed>): void {
  describe("a worker", () => {
    test("S1-32 S1-33 S1-34 S1-35 is pending when made, running with its task, completed, then gone", async () => {
      await using bed = await make();
      const { workers, name } = bed;
      expect(await workers.status(name)).toEqual({ name, exists: false, swarmState: "not_found" });
      const created = await workers.create(requestOf(bed));
      expect(created).toMatchObject({ name, image: bed.image, network: `${name}-net` });
      expect(created.containerId).toMatch(/^[0-9a-f]{64}$/);
      const pending = await workers.status(name);
      expect(pending).toMatchObject({ exists: true, swarmState: "pending", image: bed.image });
      expect(pending.taskFilePath).toBe(requestOf(bed).taskFilePath);
      await workers.startAdapter(name, startOf("wait"));
      expect(await workers.status(name)).toMatchObject({ exists: true, swarmState: "running" });
      await workers.remove(name);
      await workers.create(requestOf(bed));
      await workers.startAdapter(name, startOf("echo"));
      const heard = await hear(workers, name);
      expect(heard).toEqual({
        stdout: `${JSON.stringify(TASK)}\n`,
        stderr: "note\n",
        end: { type: "end", exitCode: 0, signal: undefined, outOfMemory: false },
      });
      expect(await workers.status(name)).toMatchObject({ swarmState: "completed", exitCode: 0 });
      await workers.remove(name);
      await workers.remove(name);
      expect(await workers.status(name)).toMatchObject({ exists: false, swarmState: "not_found" });
    });

    test("has failed when its adapter ends with another code than 0", async () => {
      await using bed = await make();
      const { workers, name } = bed;
      await workers.create(requestOf(bed));
      await workers.startAdapter(name, startOf("fail"));
      expect((await hear(workers, name)).end).toMatchObject({ exitCode: 3 });
      expect(await workers.status(name)).toMatchObject({ swarmState: "failed", exitCode: 3 });
    });

    test("that has ended takes another adapter in the same container, as often as it is asked for", async () => {
      await using bed = await make();
      const { workers, name } = bed;
      const { containerId } = await workers.create(requestOf(bed));
      await workers.startAdapter(name, startOf("fail"));
      await hear(workers, name);
      for (const _ of ["again", "and again"]) {
        expect(await workers.restart(name)).toBe(containerId);
        expect(await (await bed.another()).restart(name)).toBe(containerId);
        expect(await workers.status(name)).toMatchObject({ exists: true, swarmState: "pending" });
        await expect(hear(workers, name)).rejects.toMatchObject({ code: "EXECUTION_NOT_FOUND" });
        await workers.startAdapter(name, startOf("echo"));
        expect(await hear(workers, name)).toMatchObject({
          stdout: `${JSON.stringify(TASK)}\n`,
          end: { exitCode: 0 },
        });
        expect(await workers.status(name)).toMatchObject({ swarmState: "completed", containerId });
      }
    });

    test("is listed as long as it is there", async () => {
      await using bed = await make();
      const { workers, name } = bed;
      expect((await workers.list()).map((each) => each.name)).not.toContain(name);
      await workers.create(requestOf(bed));
      expect(await workers.list()).toContainEqual(await workers.status(name));
      await workers.remove(name);
      expect((await workers.list()).map((each) => each.name)).not.toContain(name);
    });

    test("S1-68 that runs keeps its name, one that has ended gives way", async () => {
      await using bed = await make();
      const { workers, name } = bed;
      const first = await workers.create(requestOf(bed));
      await expect(workers.create(requestOf(bed))).rejects.toMatchObject({ code: "CONTAINER_NAME_TAKEN" });
      await workers.startAdapter(name, startOf("fail"));
      await hear(workers, name);
      const second = await workers.create(requestOf(bed));
      expect(second.containerId).not.toBe(first.containerId);
      expect(await workers.status(name)).toMatchObject({ swarmState: "pending" });
      await expect(hear(workers, name)).rejects.toMatchObject({ code: "EXECUTION_NOT_FOUND" });
    });

    test("starts its adapter once, whoever asks and however often", async () => {
      await using bed = await make();
      const { workers, name } = bed;
      const other = await bed.another();
      await workers.create(requestOf(bed));
      await Promise.all([
        workers.startAdapter(name, startOf("echo")),
        other.startAdapter(name, startOf("echo")),
      ]);
      await other.startAdapter(name, startOf("echo"));
      expect((await hear(other, name)).stdout).toBe(`${JSON.stringify(TASK)}\n`);
      expect(await hear(workers, name)).toMatchObject({ stderr: "note\n", end: { exitCode: 0 } });
    });

    test("tells its output from any offset on, also when it has ended", async () => {
      await using bed = await make();
      const { workers, name } = bed;
      await workers.create(requestOf(bed));
      await workers.startAdapter(name, startOf("echo"));
      const whole = await hear(workers, name);
      const rest = await hear(await bed.another(), name, { stdoutOffset: 10, stderrOffset: 4 });
      expect(rest).toEqual({ stdout: whole.stdout.slice(10), stderr: "\n", end: whole.end });
    });

    test("tells what is recorded by now without waiting, and its end only when it has come", async () => {
      await using bed = await make();
      const { workers, name } = bed;
      await workers.create(requestOf(bed));
      await workers.startAdapter(name, startOf("wait"));
      for await (const event of workers.follow(name, ZERO)) {
        if (event.type === "output") break;
      }
      const other = await bed.another();
      const soFar = { ...ZERO, untilNow: true };
      expect(await hear(other, name, soFar)).toEqual({ stdout: "ready\n", stderr: "", end: undefined });
      await workers.stop(name, 20_000);
      const whole = await hear(other, name, soFar);
      expect(whole).toMatchObject({ stdout: "ready\nbye\n", end: { exitCode: 130 } });
      expect(await hear(other, name)).toEqual(whole);
    });

    test("is no longer followed when the signal says so, and runs on", async () => {
      await using bed = await make();
      const { workers, name } = bed;
      await workers.create(requestOf(bed));
      await workers.startAdapter(name, startOf("wait"));
      const stop = new AbortController();
      const seen: WorkerEvent[] = [];
      const following = (async () => {
        for await (const event of workers.follow(name, ZERO, stop.signal)) {
          seen.push(event);
          stop.abort();
        }
      })();
      await expect(following).rejects.toThrow();
      expect(seen).toMatchObject([{ type: "output", stream: "stdout" }]);
      expect(await workers.status(name)).toMatchObject({ swarmState: "running" });
    });

    test("gets a TERM when it is stopped, and may say a last word", async () => {
      await using bed = await make();
      const { workers, name } = bed;
      await workers.create(requestOf(bed));
      await workers.stop(name, 1_000);
      expect(await workers.status(name)).toMatchObject({ swarmState: "pending" });
      await workers.startAdapter(name, startOf("wait"));
      for await (const event of workers.follow(name, ZERO)) {
        if (event.type === "output") break;
      }
      await (await bed.another()).stop(name, 20_000);
      expect(await hear(workers, name)).toMatchObject({ stdout: "ready\nbye\n", end: { exitCode: 130 } });
      expect(await workers.status(name)).toMatchObject({ swarmState: "failed", exitCode: 130 });
      await workers.stop(name, 1_000);
      await workers.stop(`${name}-none`, 1_000);
    });

    test("that nobody made cannot be started or followed", async () => {
      await using bed = await make();
      const { workers, name } = bed;
      const missing = { code: "CONTAINER_NOT_FOUND" };
      await expect(workers.startAdapter(name, startOf("echo"))).rejects.toMatchObject(missing);
      await expect(hear(workers, name)).rejects.toMatchObject(missing);
    });
  });

  test("S1-8 an isolation that the engine does not have is refused, and nothing is made", async () => {
    await using bed = await make();
    const { workers, name } = bed;
    const refusal = { code: "ISOLATION_UNAVAILABLE" };
    await workers.checkRuntime("container");
    await expect(workers.checkRuntime("kata")).rejects.toMatchObject(refusal);
    await expect(workers.create(requestOf(bed, { isolation: "kata" }))).rejects.toMatchObject(refusal);
    expect(await workers.status(name)).toMatchObject({ exists: false });
  });
}
