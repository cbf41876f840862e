import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openAido } from "../../src/compose.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import { SandboxTokens } from "../../src/core/access/sandbox-tokens.ts";
import type { CoreAido } from "../../src/core/core-aido.ts";
import type { Counts } from "../../src/core/metrics/counters.ts";
import type { SandboxRecord } from "../../src/core/store/store.ts";
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
/** The rows in which an object is made, read or removed. */
const WITH_OBJECTS = STEPS.filter(
  ({ action, from }) => from === "cold" || (action === "gc" && from === "warm"),
);
/** An idle stop uploads first. */
const MORE_STEPS = [
  { action: "reap", from: "running" },
  { action: "expire", from: "running" },
  { action: "destroy", from: "running" },
  { action: "destroy", from: "hot" },
  { action: "destroy", from: "warm" },
] as const;

/** Nothing is idle unless it is made so. */
const IDLE_MS = 3_600_000;
const TOKEN = "the-token-that-this-sandbox-was-given";

/** Kills the process that moves a sandbox before and after every change it makes, and looks what the next one finds. */
export function deathSuite(
  driver: "docker" | "local",
  image: string,
  { onS3 = false, rows = "all" }: { onS3?: boolean; rows?: "all" | "objects" } = {},
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

  const steps = driver === "local" ? [...STEPS, ...MORE_STEPS] : STEPS;
  test.each(rows === "all" ? steps : WITH_OBJECTS)(
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
          const before = await countersOf(open);
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
            await look(next, id, { action, from, before });
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
  await aido.sandboxes.issueToken(id, TOKEN);
  await aido.files.write(id, "kept", Buffer.from("files"));
  if (from !== "running") await aido.sandboxes.stop(id, { graceMs: 0 });
  if (from === "warm" || from === "cold") await aido.gc.collect();
  if (from === "cold") await aido.gc.collect();
  const { state, tier } = await aido.sandboxes.get(id);
  expect(tier ?? state).toBe(from);
  await aido.close();
  return id;
}

interface Step {
  readonly action: string;
  readonly from: string;
  readonly before: Counts;
}

/** As the next process finds it: at most one container and one image, its token, and the files, wherever they are. */
async function look(aido: CoreAido, id: string, { action, from, before }: Step): Promise<void> {
  const mayBeGone = action === "destroy" || action === "expire" || (action === "gc" && from === "cold");
  const hasToken = () => new SandboxTokens(aido.store.sandboxes).verify(id, TOKEN);
  await aido.sandboxes.reconcile();
  const record = await aido.store.sandboxes.get(id);
  expect(added(before, await aido.store.counters.read())).toEqual(countsOf(action, from, record));
  expect(await hasToken()).toBe(record?.state !== "deleted");
  const images = (await aido.driver.committedImages()).map(({ reference }) => reference);
  const containers = await aido.driver.list();
  if (mayBeGone && record?.state === "deleted") {
    expect([containers, images]).toEqual([[], []]);
  } else {
    expect(containers.length).toBeLessThan(2);
    expect(images).toEqual(record?.warmImage === undefined ? [] : [record.warmImage]);
    if (record?.state !== "running") await aido.sandboxes.start(id);
    expect(await hasToken()).toBe(true);
    const read: Uint8Array[] = [];
    for await (const chunk of aido.files.read(id, "kept")) read.push(chunk);
    expect(Buffer.concat(read).toString()).toBe("files");
    expect(await aido.driver.list()).toHaveLength(1);
    await aido.sandboxes.destroy(id);
  }
  expect([await aido.driver.list(), await aido.driver.committedImages()]).toEqual([[], []]);
  expect((await aido.evidence.verify(id)).every(({ ok }) => ok)).toBe(true);
}

/** Each step counts with the change that it makes to the record: as often as that is seen there. */
function countsOf(action: string, from: string, record: SandboxRecord | undefined): Counts {
  const { state, tier, warmImage, snapshotSha256 } = record ?? {};
  if (action === "expire") return { reaped_lifetime: 1 };
  if (action === "stop" || action === "reap") {
    return {
      ...(warmImage !== undefined && { snapshots_committed: 1 }),
      ...(snapshotSha256 !== undefined && { snapshots_uploaded: 1 }),
      ...(action === "reap" && state === "stopped" && { reaped_idle: 1 }),
    };
  }
  if (action !== "gc") return {};
  if (from === "hot") return tier === "warm" ? { gc_containers_removed: 1 } : {};
  if (from === "warm") return tier === "cold" ? { gc_images_removed: 1, snapshots_uploaded: 1 } : {};
  return state === "deleted" ? { garbage_collected: 1, gc_s3_cleaned: 1 } : {};
}

async function countersOf(open: () => Promise<CoreAido>): Promise<Counts> {
  const aido = await open();
  try {
    return await aido.store.counters.read();
  } finally {
    await aido.close();
  }
}

function added(before: Counts, after: Counts): Counts {
  const names = Object.keys(after) as (keyof Counts)[];
  const more = names.map((name) => [name, (after[name] ?? 0) - (before[name] ?? 0)] as const);
  return Object.fromEntries(more.filter(([, by]) => by !== 0));
}

async function objects(dataDir: string): Promise<string[]> {
  const directory = join(dataDir, "objects");
  if (!existsSync(directory)) return [];
  const found = await readdir(directory, { recursive: true, withFileTypes: true });
  return found.filter((entry) => entry.isFile()).map((entry) => entry.name);
}
