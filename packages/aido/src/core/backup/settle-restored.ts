import type { Mount } from "../driver/driver.ts";
import type { PoolStore } from "../pool/pool-store.ts";
import type { SandboxRecord, Store } from "../store/store.ts";

const PAGE = 1000;

/**
 * Records of another place made true here: nothing runs, nobody is at work on anything, and files lie where they lie
 * now. The number of sandboxes.
 */
export async function settleRestored(
  store: Store & { pool: PoolStore },
  moved: { from: string; to: string },
  now: Date,
): Promise<number> {
  for (const { sandboxId, holder } of await store.claims.list())
    await store.claims.release(sandboxId, holder);
  for (const { record, holder } of await store.pool.list()) await store.pool.remove(record.id, holder);
  let count = 0;
  for (let before: string | undefined; ; ) {
    const page = await store.sandboxes.list({ limit: PAGE, before });
    for (const record of page) await settle(store, record, moved, now);
    count += page.length;
    before = page.at(-1)?.id;
    if (page.length < PAGE) return count;
  }
}

async function settle(
  store: Store,
  record: SandboxRecord,
  moved: { from: string; to: string },
  now: Date,
): Promise<void> {
  const patch = { endReason: "lost", stoppedAt: now, containerId: undefined } as const;
  await store.sandboxes.transition(record.id, ["running", "pending"], "stopped", patch);
  // It has not run here yet: without a container it begins anew, and its history can be rolled back to.
  await store.sandboxes.update(record.id, { startedAt: undefined });
  if (record.mounts.length === 0) return;
  await store.sandboxes.update(record.id, { mounts: record.mounts.map((mount) => moveMount(mount, moved)) });
}

export function moveMount(mount: Mount, { from, to }: { from: string; to: string }): Mount {
  return mount.source.startsWith(`${from}/`)
    ? { ...mount, source: to + mount.source.slice(from.length) }
    : mount;
}
