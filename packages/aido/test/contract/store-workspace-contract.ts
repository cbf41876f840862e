import { describe, expect, test } from "vitest";
import type { WorkspaceRecord } from "../../src/core/workspace/workspace-store.ts";
import { START, type StoreUnderTest } from "./records.ts";

/** The part of the stores' contract about workspaces. */
export function storeWorkspaceContract(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`${name} workspaces`, () => {
    test("S3-83 a name is one owner's; of two that ask for it one makes it", async () => {
      await using opened = await open();
      const { workspaces } = opened.store;
      const first = workspace("w1", "ada", "data");
      expect(await workspaces.insert(first, 0)).toBe(true);
      expect(await workspaces.insert({ ...first, id: "w2" }, 0)).toBe(false);
      expect(await workspaces.insert(workspace("w3", "bob", "data"), 0)).toBe(true);
      expect(await workspaces.get("ada", "data")).toEqual(first);
      expect(await workspaces.get("eve", "data")).toBeUndefined();
      expect((await workspaces.list("bob")).map(({ id }) => id)).toEqual(["w3"]);
      expect((await workspaces.list()).map(({ id }) => id)).toEqual(["w1", "w3"]);
    });

    test("S3-83 an owner has no more than allowed, whatever others have", async () => {
      await using opened = await open();
      const { workspaces } = opened.store;
      await workspaces.insert(workspace("w1", "ada", "a"), 1);
      await expect(workspaces.insert(workspace("w2", "ada", "b"), 1)).rejects.toMatchObject({
        code: "QUOTA_EXCEEDED",
      });
      expect(await workspaces.insert(workspace("w3", "bob", "b"), 1)).toBe(true);
    });

    test("S3-83 it is taken and removed only from whom it was seen with", async () => {
      await using opened = await open();
      const { workspaces } = opened.store;
      const at = new Date(START + 5);
      await workspaces.insert(workspace("w1", "ada", "data"), 0);
      expect(await workspaces.take("w1", undefined, "box1", at)).toBe(true);
      expect(await workspaces.take("w1", undefined, "box2", at)).toBe(false);
      expect(await workspaces.get("ada", "data")).toMatchObject({ sandboxId: "box1", lastUsedAt: at });
      expect(await workspaces.remove("w1", undefined)).toBe(false);
      expect(await workspaces.take("w1", "box1", "box2", at)).toBe(true);
      await workspaces.release("box1", new Date(START + 9));
      await workspaces.release("box2", new Date(START + 9), "another");
      expect(await workspaces.get("ada", "data")).toMatchObject({ sandboxId: "box2" });
      await workspaces.release("box2", new Date(START + 9));
      expect(await workspaces.get("ada", "data")).toMatchObject({
        sandboxId: undefined,
        lastUsedAt: new Date(START + 9),
      });
      expect(await workspaces.remove("w1", undefined)).toBe(true);
      expect(await workspaces.remove("w1", undefined)).toBe(false);
      expect(await workspaces.take("w1", undefined, "box3", at)).toBe(false);
    });

    test("those unused for longest come first, in pages", async () => {
      await using opened = await open();
      const { workspaces } = opened.store;
      const ages = { w1: 30, w2: 10, w3: 20, w4: 20 };
      for (const [id, age] of Object.entries(ages)) {
        await workspaces.insert({ ...workspace(id, "ada", id), lastUsedAt: new Date(START + age) }, 0);
      }
      const page = await workspaces.unusedSince(new Date(START + 20), 2);
      expect(page.map(({ id }) => id)).toEqual(["w2", "w3"]);
      const next = await workspaces.unusedSince(new Date(START + 20), 2, page[1]);
      expect(next.map(({ id }) => id)).toEqual(["w4"]);
    });
  });
}

function workspace(id: string, owner: string, name: string): WorkspaceRecord {
  return { id, owner, name, sandboxId: undefined, createdAt: new Date(START), lastUsedAt: new Date(START) };
}
