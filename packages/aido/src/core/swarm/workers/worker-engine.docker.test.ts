import { execFileSync } from "node:child_process";
import { createConnection } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { docker } from "../../../../test/backends/docker-cli.ts";
import { until } from "../../../../test/contract/driver-backend.ts";
import { expectNothing, inspect, networks } from "../../../../test/swarm/engine-looks.ts";
import { makeEngineBed, makeWorkerImage } from "../../../../test/swarm/workers-bed.ts";
import { hear, requestOf } from "../../../../test/swarm/workers-contract.ts";
import { SWARM_ID, startOf } from "../../../../test/swarm/workers-contract-values.ts";
import { openSwarmWorkers } from "../../../compose/open-swarm-workers.ts";
import { loadProcessConfig } from "../../../config/process-config.ts";
import { makeLogger } from "../../../log/make-logger.ts";

let made: Awaited<ReturnType<typeof makeWorkerImage>>;
beforeAll(async () => {
  made = await makeWorkerImage();
});
afterAll(async () => {
  await made?.[Symbol.asyncDispose]();
});
const makeBed = () => makeEngineBed(made.image);
const script = (text: string, env: Record<string, string> = {}) =>
  startOf("script", { SCRIPT: text, ...env });
describe("S1-51 what the engine knows is what is told", () => {
  test("S1-53 a container that somebody removed is missing, and its network goes too", async () => {
    await using bed = await makeBed();
    const { workers, name } = bed;
    await workers.create(requestOf(bed));
    await workers.startAdapter(name, startOf("wait"));
    await docker(["rm", "-f", name]);
    expect(await networks(name)).not.toBe("");
    expect(await workers.status(name)).toEqual({ name, exists: false, swarmState: "not_found" });
    expect(await networks(name)).toBe("");
    expect((await hear(workers, name)).end).toMatchObject({ exitCode: undefined });
    await workers.create(requestOf(bed));
    expect(await workers.status(name)).toMatchObject({ swarmState: "pending" });
  });

  test("S1-54 S1-55 a container has the adapter's exit code", async () => {
    await using bed = await makeBed();
    const { workers, name } = bed;
    for (const [code, swarmState] of [
      [0, "completed"],
      [41, "failed"],
    ] as const) {
      await workers.create(requestOf(bed));
      await workers.startAdapter(name, script(`echo all; exit ${code}`));
      expect(await hear(workers, name)).toMatchObject({ stdout: "all\n", end: { exitCode: code } });
      expect((await inspect(name)).State).toMatchObject({ Status: "exited", ExitCode: code });
      expect(await workers.status(name)).toMatchObject({ swarmState, exitCode: code, dockerState: "exited" });
    }
  });

  test("a paused container is started once more with its files, and takes another adapter", async () => {
    await using bed = await makeBed();
    const { workers, name } = bed;
    const { containerId } = await workers.create(requestOf(bed));
    await workers.startAdapter(name, startOf("script", { SCRIPT: "echo kept > /workspace/work; sleep 600" }));
    await until("it has worked", async () => {
      return (await docker(["exec", name, "ls", "/workspace"])).includes("work");
    });
    await docker(["pause", name]);
    expect(await workers.restart(name)).toBe(containerId);
    expect(await workers.status(name)).toMatchObject({ swarmState: "pending", dockerState: "running" });
    await workers.startAdapter(name, startOf("script", { SCRIPT: "cat /workspace/work" }));
    expect(await hear(workers, name)).toMatchObject({ stdout: "kept\n", end: { exitCode: 0 } });
  });

  test("S1-56 a paused container is stopped, goes on, and can be removed while paused", async () => {
    await using bed = await makeBed();
    const { workers, name } = bed;
    await workers.create(requestOf(bed));
    await workers.startAdapter(name, startOf("wait"));
    await docker(["pause", name]);
    expect(await workers.status(name)).toMatchObject({ swarmState: "stopped", dockerState: "paused" });
    await expect(workers.create(requestOf(bed))).rejects.toMatchObject({ code: "CONTAINER_NAME_TAKEN" });
    await docker(["unpause", name]);
    expect(await workers.status(name)).toMatchObject({ swarmState: "running" });
    await docker(["pause", name]);
    await workers.remove(name);
    await expectNothing(bed);
  });

  test("S1-57 a worker runs as soon as its adapter has its task, whoever looks", async () => {
    await using bed = await makeBed();
    const { workers, name } = bed;
    await workers.create(requestOf(bed));
    const other = await bed.another();
    expect(await other.status(name)).toMatchObject({ swarmState: "pending", dockerState: "running" });
    await workers.startAdapter(name, startOf("wait"));
    expect(await other.status(name)).toMatchObject({ swarmState: "running", dockerState: "running" });
  });

  test("a container that is stopped before it had a task has completed nothing", async () => {
    await using bed = await makeBed();
    const { workers, name } = bed;
    await workers.create(requestOf(bed));
    await docker(["stop", name]);
    expect(await workers.status(name)).toMatchObject({ swarmState: "stopped", exitCode: 0 });
    await expect(workers.startAdapter(name, startOf("echo"))).rejects.toMatchObject({
      code: "CONTAINER_NOT_RUNNING",
    });
  });

  test("a container that is killed has failed, and its adapter ends with its code", async () => {
    await using bed = await makeBed();
    const { workers, name } = bed;
    await workers.create(requestOf(bed));
    await workers.startAdapter(name, startOf("wait"));
    await docker(["kill", name]);
    expect((await hear(workers, name)).end).toMatchObject({ exitCode: 137 });
    expect(await workers.status(name)).toMatchObject({ swarmState: "failed", exitCode: 137 });
  });

  test("an adapter that takes more memory than it may is out of memory", async () => {
    await using bed = await makeBed();
    const { workers, name } = bed;
    const { limits } = requestOf(bed);
    const memoryAndSwapBytes = limits.memoryBytes;
    await workers.create(requestOf(bed, { limits: { ...limits, memoryAndSwapBytes } }));
    await workers.startAdapter(name, script("exec tail /dev/zero"));
    expect((await hear(workers, name)).end).toMatchObject({ exitCode: 137, outOfMemory: true });
    expect(await workers.status(name)).toMatchObject({ swarmState: "failed", exitCode: 137 });
  });

  test("an engine that does not answer says nothing about a worker", async () => {
    await using bed = await makeBed();
    const { name } = bed;
    await bed.workers.create(requestOf(bed));
    const { config } = loadProcessConfig({ flags: { dataDir: bed.dataDir, logLevel: "error" } });
    const gone = { ...config, dockerHost: "unix:///nonexistent/docker.sock" };
    await using opened = await openSwarmWorkers({ config: gone, logger: makeLogger(gone) });
    const refusal = { code: "RUNTIME_UNAVAILABLE" };
    await expect(opened.workers.status(name)).rejects.toMatchObject(refusal);
    await expect(opened.workers.status(`${name}-none`)).rejects.toMatchObject(refusal);
    await expect(opened.workers.list()).rejects.toMatchObject(refusal);
    expect(await bed.workers.status(name)).toMatchObject({ swarmState: "pending" });
  });
});

describe("S1-66 a worker's container", () => {
  test("S1-59 S1-61 S1-67 has its name, labels, limits, network and no privilege", async () => {
    await using bed = await makeBed();
    const { workers, name } = bed;
    const { containerId } = await workers.create(requestOf(bed));
    const raw = await inspect(name);
    expect(raw.Id).toBe(containerId);
    expect(raw.Config.Labels).toMatchObject({
      "org.aimi.sandbox": "true",
      "org.aimi.task-file": requestOf(bed).taskFilePath,
    });
    const { limits } = requestOf(bed);
    expect(raw.HostConfig).toMatchObject({
      Privileged: false,
      NetworkMode: `${name}-net`,
      Memory: limits.memoryBytes,
      MemorySwap: limits.memoryAndSwapBytes,
      NanoCpus: 1e9,
      CapDrop: ["ALL"],
    });
    expect(Object.keys(raw.NetworkSettings.Networks)).toEqual([`${name}-net`]);
    expect(JSON.stringify(raw.Mounts)).not.toContain("docker.sock");
    const [network] = JSON.parse(await docker(["network", "inspect", `${name}-net`]));
    expect(network).toMatchObject({ Driver: "bridge", Labels: { "org.aimi.sandbox": "true" } });
  });

  test("S1-61 S1-67 that writes beyond its limit of disk is ended, and has failed", async () => {
    await using bed = await makeBed();
    const { workers, name } = bed;
    const limits = { ...requestOf(bed).limits, diskBytes: 8 * 1024 * 1024 };
    await workers.create(requestOf(bed, { limits }));
    // Engines whose storage has quotas refuse the write; elsewhere aido ends the worker.
    const write = "dd if=/dev/zero of=/workspace/big bs=1048576 count=64 || exit 1; sleep 600";
    await workers.startAdapter(name, script(write));
    expect((await hear(workers, name)).end).toMatchObject({ outOfMemory: false });
    // The adapter is known to have ended a little before its container is.
    await until("the container ended", async () => (await inspect(name)).State.Status === "exited");
    expect(await workers.status(name)).toMatchObject({ swarmState: "failed", dockerState: "exited" });
  });

  test("gives its adapter what it works on, and no privilege or engine", async () => {
    await using bed = await makeBed();
    const { workers, name } = bed;
    const { containerId } = await workers.create(requestOf(bed));
    const look =
      'echo "$IS_SANDBOX $AIMI_BRANCH $CONTAINER_ID $SWARM_ID"; id -u; grep CapEff /proc/self/status; ' +
      "ls /var/run/docker.sock /run/docker.sock 2>/dev/null; pwd; touch mine && echo writes";
    await workers.startAdapter(name, script(look));
    expect((await hear(workers, name)).stdout).toBe(
      `1 feat/login ${containerId} ${SWARM_ID}\n1000\nCapEff:\t0000000000000000\n/workspace\nwrites\n`,
    );
  });

  test("keeps secrets to the adapter's own environment", async () => {
    await using bed = await makeBed();
    const { workers, name } = bed;
    const secret = `canary${process.pid}x7f3a9`;
    await workers.create(requestOf(bed));
    await workers.startAdapter(
      name,
      script("printf %s $ANTHROPIC_API_KEY | wc -c", { ANTHROPIC_API_KEY: secret }),
    );
    const leaks = async () => {
      expect(await docker(["inspect", name])).not.toContain(secret);
      let found = "";
      try {
        found = execFileSync("grep", ["-rlaF", secret, bed.dataDir], { encoding: "utf8" });
      } catch (error) {
        expect((error as { status?: number }).status).toBe(1);
      }
      expect(found).toBe("");
    };
    await leaks();
    expect((await hear(workers, name)).stdout).toBe(`${secret.length}\n`);
    await leaks();
  });

  test("is reached by no other worker", async () => {
    await using bed = await makeBed();
    const { workers, name } = bed;
    const other = `${name}-b`;
    await workers.create(requestOf(bed));
    await workers.create(requestOf(bed, { name: other }));
    await workers.startAdapter(name, script("while :; do echo hello | nc -l -p 8080; done"));
    const address = (await inspect(name)).NetworkSettings.Networks[`${name}-net`].IPAddress;
    // The host reaches it, so it listens.
    await until("it listens", () => answers(address, 8080));
    const dial = `nc -w 3 ${address} 8080 </dev/null && echo reached; ping -c 1 -W 2 ${address} >/dev/null 2>&1 && echo pinged; echo done`;
    await workers.startAdapter(other, script(dial));
    expect((await hear(workers, other)).stdout).toBe("done\n");
  });

  test("tells a flood and terminal escapes byte for byte", async () => {
    await using bed = await makeBed();
    const { workers, name } = bed;
    await workers.create(requestOf(bed));
    await workers.startAdapter(
      name,
      script("printf '\\033]0;owned\\007\\000\\377' >&2; yes 0123456789abcde | head -c 16000000; exit 5"),
    );
    const { stdout, stderr, end } = await hear(workers, name);
    expect(stdout.length).toBe(16_000_000);
    expect(stdout === "0123456789abcde\n".repeat(1_000_000)).toBe(true);
    expect(stderr).toBe("\u001b]0;owned\u0007\u0000\u00ff");
    expect(end).toMatchObject({ exitCode: 5 });
  });
});

async function answers(host: string, port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = createConnection({ host, port, timeout: 1_000 });
    const end = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.on("data", () => end(true));
    socket.on("timeout", () => end(false));
    socket.on("error", () => end(false));
  });
}
