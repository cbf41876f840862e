import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openAido } from "../../src/compose.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import type { CoreAido } from "../../src/core/core-aido.ts";
import { agentPath } from "../backends/agent-path.ts";
import { S3Server } from "../backends/s3-server.ts";
import { bundle } from "../processes/bundle.ts";
import { startChild } from "../processes/child.ts";
import { QUIET, settingsOf } from "./death-settings.ts";

const STEPS = [
  { action: "stop", from: "running" },
  { action: "gc", from: "hot" },
  { action: "gc", from: "warm" },
  { action: "gc", from: "cold" },
  { action: "start", from: "hot" },
  { action: "start", from: "warm" },
  { action: "start", from: "cold" },
  { action: "destroy", from: "cold" },
] as const;
/** An idle stop uploads first. */
const MORE_STEPS = [
  { action: "reap", from: "running" },
  { action: "destroy", from: "running" },
  { action: "destroy", from: "hot" },
  { action: "destroy", from: "warm" },
] as const;

/** Nothing is idle unless it is made so. */
const IDLE_MS = 3_600_000;

/** Kills the process that moves a sandbox before and after every change it makes, and looks what the next one finds. */
export function deathSuite(
  driver: "docker" | "local",
  image: string,
  { onS3 = false }: { onS3?: boolean } = {},
): void {
  const where = onS3 ? `${driver} with a real S3 server` : driver;
  let s3: S3Server | undefined;
  const kept = (dataDir: string) => s3?.objects() ?? objects(dataDir);
  let built: Awaited<ReturnType<typeof bundle>>;
  beforeAll(async () => {
    built = await bundle(new URL("./death-program.ts", import.meta.url));
    if (onS3) s3 = await S3Server.start();
  });
  afterAll(async () => {
    built[Symbol.dispose]();
    await s3?.[Symbol.asyncDispose]();
  });

  test.each(driver === "local" ? [...STEPS, ...MORE_STEPS] : STEPS)(
    `on ${where} a process killed anywhere in $action from $from loses and doubles nothing`,
    { timeout: 300_000 },
    async ({ action, from }) => {
      const dataDir = await mkdtemp(join(tmpdir(), "aido-tier-death-"));
      const open = () =>
        openAido({
          config: loadConfig(settingsOf(dataDir, driver, agentPath(), s3?.endpoint)).config,
          logger: QUIET,
        });
      let deaths = 0;
      try {
        for (let dieAt = 0; ; dieAt++) {
          const id = await prepare(await open(), image, from);
          if (from === "cold") expect(await kept(dataDir)).not.toEqual([]);
          await using child = startChild(built.program, [
            dataDir,
            driver,
            agentPath(),
            id,
            action,
            String(dieAt),
            s3?.endpoint ?? "",
          ]);
          await child.ended;
          const next = await open();
          try {
            await look(next, id, action === "destroy" || from === "cold");
            expect(await kept(dataDir)).toEqual([]);
          } finally {
            await next.close();
          }
          if (child.signal !== "SIGKILL") {
            // It came to its end, and said how many changes it has made.
            expect(Number(child.lines[0])).toBe(dieAt);
            break;
          }
          deaths += 1;
        }
        expect(deaths).toBeGreaterThan(3);
      } finally {
        const last = await open();
        for (const { sandboxId } of await last.driver.list()) await last.driver.remove(sandboxId);
        for (const { reference } of await last.driver.committedImages())
          await last.driver.removeImage(reference);
        await last.close();
        await rm(dataDir, { recursive: true, force: true });
      }
    },
  );
}

async function prepare(aido: CoreAido, image: string, from: string): Promise<string> {
  const { id } = await aido.sandboxes.create({ image, workdir: "/work", idleTimeoutMs: IDLE_MS });
  await aido.files.write(id, "kept", Buffer.from("files"));
  if (from !== "running") await aido.sandboxes.stop(id, { graceMs: 0 });
  if (from === "warm" || from === "cold") await aido.gc.collect();
  if (from === "cold") await aido.gc.collect();
  const { state, tier } = await aido.sandboxes.get(id);
  expect(tier ?? state).toBe(from);
  await aido.close();
  return id;
}

/** As the next process finds it: at most one container and one image, and the files, wherever they are. */
async function look(aido: CoreAido, id: string, mayBeGone: boolean): Promise<void> {
  await aido.sandboxes.reconcile();
  const record = await aido.store.sandboxes.get(id);
  const images = (await aido.driver.committedImages()).map(({ reference }) => reference);
  const containers = await aido.driver.list();
  if (mayBeGone && record?.state === "deleted") {
    expect([containers, images]).toEqual([[], []]);
  } else {
    expect(containers.length).toBeLessThan(2);
    expect(images).toEqual(record?.warmImage === undefined ? [] : [record.warmImage]);
    if (record?.state !== "running") await aido.sandboxes.start(id);
    const read: Uint8Array[] = [];
    for await (const chunk of aido.files.read(id, "kept")) read.push(chunk);
    expect(Buffer.concat(read).toString()).toBe("files");
    expect(await aido.driver.list()).toHaveLength(1);
    await aido.sandboxes.destroy(id);
  }
  expect([await aido.driver.list(), await aido.driver.committedImages()]).toEqual([[], []]);
  expect((await aido.evidence.verify(id)).every(({ ok }) => ok)).toBe(true);
}

async function objects(dataDir: string): Promise<string[]> {
  const directory = join(dataDir, "objects");
  if (!existsSync(directory)) return [];
  const found = await readdir(directory, { recursive: true, withFileTypes: true });
  return found.filter((entry) => entry.isFile()).map((entry) => entry.name);
}
