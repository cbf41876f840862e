import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { agentPath } from "../../../../test/backends/agent-path.ts";
import { docker } from "../../../../test/backends/docker-cli.ts";
import { until } from "../../../../test/contract/driver-backend.ts";
import { bundle } from "../../../../test/processes/bundle.ts";
import { startChild } from "../../../../test/processes/child.ts";
import { makeEngineBed, makeWorkerImage } from "../../../../test/swarm/workers-bed.ts";
import { hear, requestOf } from "../../../../test/swarm/workers-contract.ts";
import { startOf, TASK } from "../../../../test/swarm/workers-contract-values.ts";

let made: Awaited<ReturnType<typeof makeWorkerImage>>;
let built: Awaited<ReturnType<typeof bundle>>;
beforeAll(async () => {
  made = await makeWorkerImage();
  built = await bundle(new URL("../../../../test/processes/workers-program.ts", import.meta.url));
});
afterAll(async () => {
  await made?.[Symbol.asyncDispose]();
  built?.[Symbol.dispose]();
});
const makeBed = () => makeEngineBed(made.image);
const LINES = 4_000;
const COUNT = `i=0; while [ $i -lt ${LINES} ]; do echo "line $i"; i=$((i+1)); [ $((i % 100)) -eq 0 ] && usleep 20000; done; echo over >&2; exit 7`;
const COUNTED = Array.from({ length: LINES }, (_, i) => `line ${i}\n`).join("");

test("S1-7 a host killed while the adapter writes: the next one has every byte once, then the container ends", async () => {
  await using bed = await makeBed();
  const { workers, name } = bed;
  await workers.create(requestOf(bed));
  await using child = startChild(built.program, [bed.dataDir, agentPath(), name, COUNT]);
  await child.until(5);
  await child.kill();
  const seen = Number(child.lines[2]);
  expect(seen).toBeLessThan(COUNTED.length);
  expect(await workers.status(name)).toMatchObject({ swarmState: "running" });
  const end = { type: "end", exitCode: 7, signal: undefined, outOfMemory: false };
  expect(await hear(workers, name)).toEqual({ stdout: COUNTED, stderr: "over\n", end });
  const rest = await hear(await bed.another(), name, { stdoutOffset: seen, stderrOffset: 0 });
  expect(rest.stdout).toBe(COUNTED.slice(seen));
  expect(await docker(["inspect", "-f", "{{.State.ExitCode}}", name])).toBe("7");
});

test("an adapter that ends while no host is there waits, with its output and its code, for the next", async () => {
  await using bed = await makeBed();
  const { workers, name } = bed;
  await workers.create(requestOf(bed));
  await using child = startChild(built.program, [
    bed.dataDir,
    agentPath(),
    name,
    "echo first; sleep 1; echo last; exit 9",
  ]);
  await child.until(1);
  await child.kill();
  const processes = async () => (await docker(["top", name, "-o", "pid,args"])).includes("acp-adapter");
  await until("the adapter has ended", async () => !(await processes()));
  expect(await workers.status(name)).toMatchObject({ swarmState: "running", dockerState: "running" });
  expect(await hear(workers, name)).toMatchObject({ stdout: "first\nlast\n", end: { exitCode: 9 } });
  expect(await workers.status(name)).toMatchObject({ swarmState: "failed", exitCode: 9 });
});

describe("a host that is killed while it starts the adapter leaves a pending worker that starts", () => {
  test.each(["stored", "started", "given"])("%s", async (where) => {
    await using bed = await makeBed();
    const { workers, name } = bed;
    await workers.create(requestOf(bed));
    const say = 'while [ ! -e go ]; do sleep 0.05; done; printf "%s\\n" "$task"';
    await using child = startChild(built.program, [bed.dataDir, agentPath(), name, say, where]);
    await child.ended;
    expect(child.signal).toBe("SIGKILL");
    expect(await workers.status(name)).toMatchObject({ swarmState: "pending" });
    // The second has another time in its request: what counts is that the adapter gets one whole one.
    const request = { ...TASK, timestamp: "2026-02-16T00:00:01.0000000Z" };
    await workers.startAdapter(name, { ...startOf("script", { SCRIPT: say }), request });
    await docker(["exec", "-u", "1000", name, "touch", "/workspace/go"]);
    const { stdout, end } = await hear(workers, name);
    expect(JSON.parse(stdout)).toEqual(where === "given" ? TASK : request);
    expect(end).toMatchObject({ exitCode: 0 });
    expect(await workers.status(name)).toMatchObject({ swarmState: "completed" });
  });
});

test("an adapter that ended before its host could write down that it was started has completed", async () => {
  await using bed = await makeBed();
  const { workers, name } = bed;
  await workers.create(requestOf(bed));
  const say = 'printf "%s\\n" "$task"';
  await using child = startChild(built.program, [bed.dataDir, agentPath(), name, say, "over"]);
  await child.ended;
  expect(child.signal).toBe("SIGKILL");
  expect(await workers.status(name)).toMatchObject({ swarmState: "completed", exitCode: 0 });
  expect(await workers.list()).toMatchObject([{ swarmState: "completed" }]);
  await workers.startAdapter(name, startOf("script", { SCRIPT: say }));
  expect(JSON.parse((await hear(workers, name)).stdout)).toEqual(TASK);
});
