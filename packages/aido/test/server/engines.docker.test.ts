import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openAido } from "../../src/compose.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import type { CoreAido } from "../../src/core/core-aido.ts";
import { agentPath } from "../backends/agent-path.ts";
import { docker } from "../backends/docker-cli.ts";
import { OwnEngine } from "../backends/own-engine.ts";
import { output } from "../contract/aido-contract.ts";
import { QUIET } from "../tier/death-settings.ts";

const BUSYBOX = { image: "aido-test:busybox", ttlMs: 600_000 };
const root = mkdtempSync(join(tmpdir(), "aido-engines-"));
let engines: [OwnEngine, OwnEngine];
const open = (hosts: readonly string[] = engines.map(({ host }) => host), dataDir = join(root, "data")) =>
  openAido({
    config: loadConfig({
      env: { XDG_CONFIG_HOME: "/nowhere", SANDBOX_GC_HOT_RETENTION: "0" },
      cwd: root,
      flags: { dataDir, driver: "docker", agentPath: agentPath(), dockerHosts: hosts.join(",") },
    }).config,
    logger: QUIET,
  });

beforeAll(async () => {
  engines = [await OwnEngine.start(), await OwnEngine.start()];
  await Promise.all(engines.map((engine) => engine.addImage("busybox")));
});
afterAll(async () => {
  for (const engine of engines ?? []) await engine[Symbol.asyncDispose]();
  rmSync(root, { recursive: true, force: true });
});

/** The sandboxes that an engine has, as it says itself. */
async function on({ host }: OwnEngine): Promise<string[]> {
  const format = '{{.Label "dev.aido.sandbox"}}';
  const listed = await docker(["ps", "-a", "--format", format], { host });
  return listed.split("\n").filter((line) => line !== "");
}

async function cleared(aido: CoreAido): Promise<void> {
  for (const { id } of await aido.sandboxes.list()) await aido.sandboxes.destroy(id);
  await aido.close();
}

describe("several Docker engines", () => {
  test("S3-63 new sandboxes go to the least loaded engine, many at once too, and work where they are", async () => {
    const aido = await open();
    try {
      const made = await Promise.all(Array.from({ length: 4 }, () => aido.sandboxes.create(BUSYBOX)));
      const [one, two] = engines;
      expect([(await on(one)).length, (await on(two)).length]).toEqual([2, 2]);
      for (const id of await on(one)) await aido.sandboxes.destroy(id);
      const next = [await aido.sandboxes.create(BUSYBOX), await aido.sandboxes.create(BUSYBOX)];
      expect((await on(one)).sort()).toEqual(next.map(({ id }) => id).sort());
      for (const { id } of await aido.sandboxes.list()) {
        expect(await output(aido, id, ["sh", "-c", "echo here > f; cat f"])).toBe("here\n");
      }
      expect(made).toHaveLength(4);
    } finally {
      await cleared(aido);
    }
    expect([await on(engines[0]), await on(engines[1])]).toEqual([[], []]);
  });

  test("S3-63 a sandbox stays with its engine through stop, another process, the warm tier and back", async () => {
    let aido = await open();
    try {
      const { id } = await aido.sandboxes.create(BUSYBOX);
      await output(aido, id, ["sh", "-c", "echo kept > f"]);
      const at = (await on(engines[0])).includes(id) ? 0 : 1;
      await aido.sandboxes.stop(id);
      await aido.close();
      aido = await open();
      await aido.sandboxes.start(id);
      expect(await output(aido, id, ["cat", "f"])).toBe("kept\n");
      // The other engine is the emptier one from now on.
      await aido.sandboxes.stop(id);
      expect(await aido.gc.collect()).toMatchObject({ warmed: [id], failed: [] });
      await aido.sandboxes.start(id);
      expect(await on(engines[at])).toEqual([id]);
      expect(await output(aido, id, ["cat", "f"])).toBe("kept\n");
      await aido.sandboxes.destroy(id);
      expect(await aido.driver.committedImages()).toEqual([]);
    } finally {
      await cleared(aido);
    }
  });

  test("S3-63 an engine that is down takes its own sandboxes out of reach and no other, and they come back with it", async () => {
    const aido = await open();
    try {
      const [one, two] = [await aido.sandboxes.create(BUSYBOX), await aido.sandboxes.create(BUSYBOX)];
      const down = (await on(engines[0])).includes(one.id) ? one : two;
      const up = down === one ? two : one;
      await engines[0].stop();
      const unavailable = { code: "RUNTIME_UNAVAILABLE" };
      await expect(aido.sandboxes.stop(down.id)).rejects.toMatchObject(unavailable);
      expect(await output(aido, up.id, ["echo", "on"])).toBe("on\n");
      // Not lost, nor is it known to run: it is as it was.
      const states = (await aido.sandboxes.list()).map(({ id, state }) => [id, state]);
      expect(new Map(states as [string, string][]).get(down.id)).toBe("running");
      const more = await aido.sandboxes.create(BUSYBOX);
      expect(await on(engines[1])).toContain(more.id);
      const { version, warnings } = await aido.driver.capabilities();
      expect(version).toContain(engines[1].host);
      expect(warnings[0]).toContain(engines[0].host);
      // Its time comes while its engine is away: the others are looked after all the same.
      await aido.store.sandboxes.update(down.id, { expiresAt: new Date(Date.now() - 1) });
      expect((await aido.sandboxes.list()).map(({ id }) => id)).toContain(up.id);
      await engines[0].restart();
      expect((await aido.sandboxes.list()).map(({ id }) => id)).not.toContain(down.id);
      expect(await on(engines[0])).toEqual([]);
    } finally {
      await cleared(aido);
    }
  });

  test("S3-63 sandboxes of an engine that was taken out of the settings can be given up", async () => {
    const dataDir = join(root, "removed");
    const both = await open(undefined, dataDir);
    const [one, two] = [await both.sandboxes.create(BUSYBOX), await both.sandboxes.create(BUSYBOX)];
    await both.close();
    const [left, gone] = (await on(engines[0])).includes(one.id) ? [two, one] : [one, two];
    const aido = await open([engines[1].host], dataDir);
    try {
      expect(await output(aido, left.id, ["echo", "on"])).toBe("on\n");
      const refused = { code: "RUNTIME_UNAVAILABLE", hint: expect.stringContaining("dockerHosts") };
      await expect(aido.sandboxes.stop(gone.id)).rejects.toMatchObject(refused);
      expect(await aido.sandboxes.list()).toHaveLength(2);
      await aido.sandboxes.destroy(gone.id);
      expect((await aido.sandboxes.list()).map(({ id }) => id)).toEqual([left.id]);
    } finally {
      await cleared(aido);
      for (const id of await on(engines[0])) {
        const filter = ["ps", "-aq", "--filter", `label=dev.aido.sandbox=${id}`];
        const container = await docker(filter, { host: engines[0].host });
        await docker(["rm", "-f", container], { host: engines[0].host });
      }
    }
  });
});
