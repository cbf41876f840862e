import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { sandboxBed } from "../../../test/sandbox/sandbox-bed.ts";
import { OWNER_LABEL } from "../access/owner-label.ts";
import { WorkspaceService } from "./workspace-service.ts";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const of = (owner: string) => ({ labels: { [OWNER_LABEL]: owner } });

function workspaceBed(options: { maxWorkspaces?: number } = {}) {
  const bed = sandboxBed({ overrides: options });
  const workspaces = new WorkspaceService(bed.depsOf("p1"), { ttlMs: 7 * DAY_MS });
  const directories = () => (existsSync(bed.dataDir.workspaces) ? readdirSync(bed.dataDir.workspaces) : []);
  return Object.assign(bed, { workspaces, directories });
}

describe("a workspace", () => {
  test("S3-83 is one sandbox's at a time, running or stopped, and the next one's when that is destroyed", async () => {
    await using bed = workspaceBed();
    const first = await bed.sandboxes.create({ workspace: "data" });
    expect(first.workspace).toBe("data");
    const [mount] = (await bed.store.sandboxes.get(first.id))?.mounts ?? [];
    expect(mount).toMatchObject({ target: first.workdir, readOnly: false });
    const inUse = { code: "WORKSPACE_IN_USE", details: { sandboxId: first.id } };
    await expect(bed.sandboxes.create({ workspace: "data" })).rejects.toMatchObject(inUse);
    await bed.sandboxes.stop(first.id);
    await expect(bed.sandboxes.create({ workspace: "data" })).rejects.toMatchObject(inUse);
    await expect(bed.workspaces.remove("data")).rejects.toMatchObject(inUse);
    expect(await bed.workspaces.list()).toMatchObject([
      { name: "data", owner: "anonymous", sandboxId: first.id, expiresAt: undefined },
    ]);
    await bed.sandboxes.destroy(first.id);
    const next = await bed.sandboxes.create({ workspace: "data" });
    expect((await bed.store.sandboxes.get(next.id))?.mounts).toEqual([mount]);
    expect(bed.directories()).toHaveLength(1);
  });

  test("S3-83 of the same name is another's of another owner", async () => {
    await using bed = workspaceBed();
    const [ada, bob] = [
      await bed.sandboxes.create({ ...of("ada"), workspace: "data" }),
      await bed.sandboxes.create({ ...of("bob"), workspace: "data" }),
    ];
    const sources = await Promise.all(
      [ada, bob].map(async ({ id }) => (await bed.store.sandboxes.get(id))?.mounts[0]?.source),
    );
    expect(new Set(sources).size).toBe(2);
    expect(await bed.workspaces.list({ owner: "ada" })).toMatchObject([{ sandboxId: ada.id }]);
    expect(await bed.workspaces.list()).toEqual([]);
    expect(await bed.workspaces.list({ all: true })).toHaveLength(2);
    await expect(bed.workspaces.remove("data")).rejects.toMatchObject({ code: "RESOURCE_NOT_FOUND" });
  });

  test("S3-83 is one of as many as its owner may have", async () => {
    await using bed = workspaceBed({ maxWorkspaces: 2 });
    for (const workspace of ["a", "b"]) {
      await bed.sandboxes.destroy((await bed.sandboxes.create({ workspace })).id);
    }
    const refused = { code: "QUOTA_EXCEEDED", details: { limit: 2 } };
    await expect(bed.sandboxes.create({ workspace: "c" })).rejects.toMatchObject(refused);
    await bed.sandboxes.create({ workspace: "a" });
    await bed.sandboxes.create({ ...of("ada"), workspace: "c" });
    await bed.workspaces.remove("b");
    await bed.sandboxes.create({ workspace: "c" });
  });

  test.each(["", "..", "a/b", ".hidden", "x".repeat(64), "a\nb"])("is not called %j", async (workspace) => {
    await using bed = workspaceBed();
    await expect(bed.sandboxes.create({ workspace })).rejects.toMatchObject({ code: "VALIDATION_ERROR" });
    expect(bed.directories()).toEqual([]);
  });

  test("S3-83 is removed when no sandbox has had it for its time, and never while one has it", async () => {
    await using bed = workspaceBed();
    const long = await bed.sandboxes.create({ workspace: "long" });
    const { id } = await bed.sandboxes.create({ workspace: "left" });
    // Running, they would be spoken to every few seconds of all that time.
    await bed.sandboxes.stop(long.id, { graceMs: 0 });
    await bed.sandboxes.stop(id, { graceMs: 0 });
    const later = (days: number) => bed.clock.advance(days * DAY_MS);
    await later(30);
    await bed.sandboxes.destroy(id);
    await bed.workspaces.expire();
    const [left] = await bed.workspaces.list();
    expect(left).toMatchObject({ name: "left", expiresAt: new Date(bed.clock.now().getTime() + 7 * DAY_MS) });
    await later(7);
    bed.clock.set(new Date(bed.clock.now().getTime() + DAY_MS));
    await bed.workspaces.expire();
    expect(await bed.workspaces.list()).toHaveLength(2);
    await bed.clock.advance(HOUR_MS);
    await bed.workspaces.expire();
    expect(await bed.workspaces.list()).toMatchObject([{ name: "long", sandboxId: long.id }]);
    expect(bed.directories()).toHaveLength(1);
  });

  test("is free again after a create that fails, though a sandbox of the same id has another one", async () => {
    await using bed = workspaceBed();
    const first = await bed.sandboxes.create({ id: "box1", workspace: "one" });
    await expect(bed.sandboxes.create({ id: "box1", workspace: "two" })).rejects.toMatchObject({
      code: "CONTAINER_NAME_TAKEN",
    });
    bed.driver.failNext("start", new Error("no room"));
    await expect(bed.sandboxes.create({ workspace: "two" })).rejects.toMatchObject({
      code: "CONTAINER_START_FAILED",
    });
    expect(await bed.workspaces.list()).toMatchObject([
      { name: "one", sandboxId: first.id },
      { name: "two", sandboxId: undefined },
    ]);
    await bed.sandboxes.create({ workspace: "two" });
  });

  test("is free when the process that took it died before its sandbox was recorded, and not before", async () => {
    await using bed = workspaceBed();
    const { store, clock } = bed;
    const now = clock.now();
    const made = { id: "w1", owner: "anonymous", name: "data", createdAt: now, lastUsedAt: now };
    await store.workspaces.insert({ ...made, sandboxId: "unborn" }, 0);
    const until = new Date(now.getTime() + 60_000);
    await store.claims.take({ sandboxId: "unborn", holder: "p2", purpose: "create", until }, now);
    const inUse = { code: "WORKSPACE_IN_USE" };
    await expect(bed.sandboxes.create({ workspace: "data" })).rejects.toMatchObject(inUse);
    bed.dead.add("p2");
    const { id } = await bed.sandboxes.create({ workspace: "data" });
    expect(await bed.workspaces.list()).toMatchObject([{ name: "data", sandboxId: id }]);
  });

  test("of many that ask for it at once goes to one", async () => {
    await using bed = workspaceBed();
    const asked = await Promise.allSettled(
      Array.from({ length: 8 }, () => bed.sandboxes.create({ workspace: "data" })),
    );
    const got = asked.flatMap((one) => (one.status === "fulfilled" ? [one.value.id] : []));
    expect(got).toHaveLength(1);
    expect(await bed.workspaces.list()).toMatchObject([{ sandboxId: got[0] }]);
    expect(bed.directories()).toHaveLength(1);
  });

  test("whose removal was cut off is cleared away with all that hostile code left in it", async () => {
    await using bed = workspaceBed();
    const left = bed.dataDir.workspace("0123");
    mkdirSync(`${left}/deep`, { recursive: true });
    const canary = `${bed.dataDir.root}/canary`;
    writeFileSync(canary, "kept");
    symlinkSync(canary, `${left}/deep/link`);
    symlinkSync(bed.dataDir.root, `${left}/up`);
    await bed.sandboxes.create({ workspace: "data" });
    await bed.workspaces.tidy();
    expect(existsSync(left)).toBe(false);
    expect(existsSync(canary)).toBe(true);
    expect(bed.directories()).toHaveLength(1);
  });
});
