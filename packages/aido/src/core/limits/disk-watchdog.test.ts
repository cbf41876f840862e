import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { passUntil, sandboxBed } from "../../../test/sandbox/sandbox-bed.ts";

const LIMITS = { limits: { diskBytes: 10_000 } };
const ENFORCED = { enforced: { cpus: true, memory: true, pids: true, disk: true } };

describe("the disk limit", () => {
  test.each([
    ["a driver that has no quotas", {}],
    ["a driver whose quotas do not cover the host's directories", ENFORCED],
  ])("counts every writable mount, with %s", async (_, capabilities) => {
    await using bed = sandboxBed({ capabilities });
    const outputs = join(bed.dataDir.root, "outputs");
    const inputs = join(bed.dataDir.root, "inputs");
    for (const path of [outputs, inputs]) mkdirSync(path, { recursive: true });
    const mounts = [
      { source: outputs, target: "/outputs", readOnly: false },
      { source: inputs, target: "/inputs", readOnly: true },
    ];
    const { id } = await bed.sandboxes.prepare(LIMITS, { mounts: () => mounts });
    writeFileSync(join(inputs, "big"), "x".repeat(50_000));
    await bed.sandboxes.launch(id);
    await bed.clock.advance(3000);
    expect(await bed.sandboxes.get(id)).toMatchObject({ state: "running" });
    writeFileSync(join(outputs, "big"), "x".repeat(50_000));
    const ended = bed.sandboxes.untilEnded(id, new AbortController().signal);
    await passUntil(bed, ended);
    expect(await ended).toMatchObject({ state: "stopped", endReason: "disk_full" });
  });

  test("is watched on after a failure to measure", async () => {
    await using bed = sandboxBed();
    bed.driver.failNext("written", new Error("not now"));
    const { id } = await bed.sandboxes.create(LIMITS);
    await bed.clock.advance(3000);
    await bed.driver.files(id).writeFile("/", "/work/big", "x".repeat(50_000));
    const ended = bed.sandboxes.untilEnded(id, new AbortController().signal);
    await passUntil(bed, ended);
    expect(await ended).toMatchObject({ endReason: "disk_full" });
  });

  test("ends a sandbox that cannot be measured again and again, and says so", async () => {
    await using bed = sandboxBed();
    for (let time = 0; time < 10; time += 1) bed.driver.failNext("written", new Error("no room to look"));
    const { id } = await bed.sandboxes.create(LIMITS);
    const ended = bed.sandboxes.untilEnded(id, new AbortController().signal);
    await passUntil(bed, ended);
    expect(await ended).toMatchObject({ state: "stopped", endReason: "disk_full" });
    expect(await bed.events(id)).toContain("limit.disk");
    expect(bed.warnings).toContain("Disk use cannot be measured; the sandbox is stopped");
  });

  test("is not given up, and ends nothing, while the backend does not answer", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create(LIMITS);
    for (let time = 0; time < 20; time += 1) {
      bed.driver.failNext("written", new Error("the engine restarts"));
      bed.driver.failNext("inspect", new Error("the engine restarts"));
    }
    for (let second = 0; second < 25; second += 1) await bed.clock.advance(1000);
    expect(await bed.store.sandboxes.get(id)).toMatchObject({ state: "running" });
  });

  test("is watched by the process that takes a running sandbox over", async () => {
    await using bed = sandboxBed();
    const { id } = await bed.sandboxes.create(LIMITS);
    await bed.sandboxes.close();
    const successor = bed.process("p2");
    await successor.takeOver(id);
    await bed.driver.files(id).writeFile("/", "/work/big", "x".repeat(50_000));
    const ended = successor.untilEnded(id, new AbortController().signal);
    await passUntil(bed, ended);
    expect(await ended).toMatchObject({ endReason: "disk_full" });
  });
});
