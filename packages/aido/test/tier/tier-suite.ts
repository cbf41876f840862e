import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openAido } from "../../src/compose.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import { SandboxTokens } from "../../src/core/access/sandbox-tokens.ts";
import type { CoreAido } from "../../src/core/core-aido.ts";
import { SystemClock } from "../../src/core/system-clock.ts";
import { S3Server } from "../backends/s3-server.ts";

const DAY_MS = 86_400_000;
const ignore = () => undefined;
const logger = { debug: ignore, info: ignore, warn: ignore, error: ignore, child: () => logger };
const FILL =
  "mkdir -p d/e && echo one > d/file && chmod 640 d/file && ln -s d/file link && printf x > d/e/x && chmod 755 d/e/x";
const SHOW = "find . | sort | xargs stat -c '%n %F %a %s'; cat d/file; readlink link";

/** The machine's clock, ahead by as much as a test says. */
class MovedClock extends SystemClock {
  aheadMs = 0;

  override now(): Date {
    return new Date(super.now().getTime() + this.aheadMs);
  }
}

/** Every tier on a real driver and a real S3 server, with a clock that moves on. */
export function tierSuite(driver: "docker" | "local", image: string): void {
  test(`S2-15 S2-16 S2-54 S2-55 S2-56 on ${driver} a sandbox goes running, hot, warm, cold, running and away, with its files and token`, {
    timeout: 120_000,
  }, async () => {
    await using s3 = await S3Server.start();
    const dataDir = await mkdtemp(join(tmpdir(), "aido-tiers-"));
    const env = { ...s3.env, SANDBOX_SNAPSHOT_DESTINATION_PREFIX: `s3://${s3.bucket}/kept/` };
    const { config } = loadConfig({ env, cwd: dataDir, flags: { dataDir, driver } });
    const clock = new MovedClock();
    const open = () => openAido({ config, logger, clock });
    let aido = await open();
    /** Another process each time: nothing is kept in memory. */
    const later = async (days: number): Promise<CoreAido> => {
      clock.aheadMs += days * DAY_MS;
      await aido.close();
      aido = await open();
      return aido;
    };
    const sh = async (id: string, script: string): Promise<string> => {
      const exec = await aido.execs.start(id, { argv: ["/bin/sh", "-c", script] });
      await aido.execs.wait(id, exec.id);
      const chunks: Uint8Array[] = [];
      for await (const chunk of aido.execs.output(id, exec.id)) chunks.push(chunk.data);
      return Buffer.concat(chunks).toString();
    };
    try {
      const { id, token = "" } = await aido.sandboxes.create({ profile: "sidecar", image, workdir: "/work" });
      await sh(id, FILL);
      const before = await sh(id, SHOW);
      expect(before).toContain("640");
      const supervisorToken = (await aido.store.sandboxes.get(id))?.supervisorToken;
      /** What opens its sidecar API, and nothing else does. */
      const opens = async () => {
        const tokens = new SandboxTokens(aido.store.sandboxes);
        const wrong = token.replace(/^./, (first) => (first === "0" ? "1" : "0"));
        return [await tokens.verify(id, token), await tokens.verify(id, wrong)];
      };
      const isIn = async (tier: string) => {
        expect(await aido.sandboxes.get(id)).toMatchObject({ state: "stopped", tier });
        expect(await opens()).toEqual([true, false]);
      };
      const comesBack = async () => {
        expect(await aido.sandboxes.start(id)).toMatchObject({ id, state: "running", tier: undefined });
        expect(await sh(id, SHOW)).toBe(before);
        expect((await aido.store.sandboxes.get(id))?.supervisorToken).toBe(supervisorToken);
        expect(await opens()).toEqual([true, false]);
      };
      expect(await opens()).toEqual([true, false]);
      await aido.sandboxes.stop(id);
      await isIn("hot");
      await comesBack();
      await aido.sandboxes.stop(id);
      expect(await aido.gc.collect()).toMatchObject({ warmed: [], failed: [] });
      expect(await (await later(1)).gc.collect()).toMatchObject({ warmed: [id], failed: [] });
      expect(await aido.driver.list()).toEqual([]);
      await isIn("warm");
      await comesBack();
      await aido.sandboxes.stop(id);
      expect(await (await later(1)).gc.collect()).toMatchObject({ warmed: [id], failed: [] });
      expect(await (await later(2)).gc.collect()).toMatchObject({ cooled: [id], failed: [] });
      await isIn("cold");
      expect(await s3.objects()).toHaveLength(1);
      expect(await aido.driver.list()).toEqual([]);
      expect(await aido.driver.committedImages()).toEqual([]);
      await comesBack();
      const url = (await aido.store.sandboxes.get(id))?.snapshotUrl ?? "";
      expect(url).toContain(`s3://${s3.bucket}/kept/${id}/`);
      await aido.sandboxes.destroy(id);
      expect(await aido.driver.list()).toEqual([]);
      expect(await aido.driver.committedImages()).toEqual([]);
      expect(await s3.objects()).toEqual([]);
      expect(await aido.store.sandboxes.get(id)).toMatchObject({ state: "deleted", tier: undefined });
      expect(await opens()).toEqual([false, false]);
      expect((await aido.evidence.verify(id)).every(({ ok }) => ok)).toBe(true);
      expect(await aido.store.counters.read()).toMatchObject({ snapshots_uploaded: 1, gc_images_removed: 1 });
    } finally {
      for (const { sandboxId } of await aido.driver.list()) await aido.driver.remove(sandboxId);
      await aido.close();
      await rm(dataDir, { recursive: true, force: true });
    }
  });
}
