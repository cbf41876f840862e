import { describe, expect, test } from "vitest";
import { ApiBed } from "../../test/server/api-bed.ts";

describe("workspaces over HTTP", () => {
  test("S3-83 belong to a key: nobody else sees, takes or removes them, and administrators may", async () => {
    await using bed = await ApiBed.open({ guarded: true });
    const [ada, eve, boss] = [
      await bed.key("ada"),
      await bed.key("eve"),
      await bed.key("boss", { scopes: ["read", "write", "admin"] }),
    ];
    const made = await bed.post("/api/sandbox", { workspace: "data" }, { key: ada });
    expect(made).toMatchObject({ status: 201, json: { workspace: "data", labels: {} } });
    const id = made.json.containerId;
    const listed = await bed.get("/api/workspaces", { key: ada });
    expect(listed.json.workspaces).toEqual([
      {
        name: "data",
        owner: expect.stringMatching(/^key:/),
        containerId: id,
        createdAt: expect.any(String),
        lastUsedAt: expect.any(String),
        expiresAt: null,
      },
    ]);
    const [{ owner }] = listed.json.workspaces;
    expect((await bed.get("/api/workspaces", { key: eve })).json).toEqual({ workspaces: [] });
    for (const path of [`/api/workspaces?owner=${owner}`, "/api/workspaces?all=true"]) {
      expect((await bed.get(path, { key: eve })).status).toBe(403);
      expect((await bed.get(path, { key: boss })).json.workspaces).toHaveLength(1);
    }
    expect((await bed.call("DELETE", "/api/workspaces/data", { key: eve })).status).toBe(404);
    expect((await bed.call("DELETE", `/api/workspaces/data?owner=${owner}`, { key: eve })).status).toBe(403);
    const inUse = await bed.post("/api/sandbox", { workspace: "data" }, { key: ada });
    expect(inUse).toMatchObject({ status: 409, json: { error: { code: "WORKSPACE_IN_USE" } } });
    const own = await bed.post("/api/sandbox", { workspace: "data" }, { key: eve });
    expect(own.status).toBe(201);
    await bed.call("DELETE", `/api/sandbox/${id}`, { key: ada });
    const removed = await bed.call("DELETE", `/api/workspaces/data?owner=${owner}`, { key: boss });
    expect(removed).toMatchObject({ status: 200, json: { status: "deleted", name: "data" } });
    expect((await bed.get("/api/workspaces", { key: eve })).json.workspaces).toHaveLength(1);
  });

  test("S3-83 are bounded for each key, and a name that is none is refused", async () => {
    await using bed = await ApiBed.open({ guarded: true, env: { AIDO_WORKSPACES_MAX: "1" } });
    const [ada, eve] = [await bed.key("ada"), await bed.key("eve")];
    expect((await bed.post("/api/sandbox", { workspace: "a" }, { key: ada })).status).toBe(201);
    const more = await bed.post("/api/sandbox", { workspace: "b" }, { key: ada });
    expect(more).toMatchObject({ status: 429, json: { error: { code: "QUOTA_EXCEEDED" } } });
    expect((await bed.post("/api/sandbox", { workspace: "b" }, { key: eve })).status).toBe(201);
    expect((await bed.post("/api/sandbox", { workspace: "../b" }, { key: eve })).status).toBe(400);
  });

  test("are the SDK's too", async () => {
    await using bed = await ApiBed.open();
    const client = bed.client();
    const { id, workspace } = await client.sandboxes.create({ workspace: "data" });
    expect(workspace).toBe("data");
    expect(await client.workspaces.list()).toMatchObject([
      { name: "data", owner: "anonymous", sandboxId: id, lastUsedAt: expect.any(Date) },
    ]);
    await expect(client.workspaces.remove("data")).rejects.toMatchObject({ code: "WORKSPACE_IN_USE" });
    await client.sandboxes.destroy(id);
    await client.workspaces.remove("data");
    expect(await client.workspaces.list()).toEqual([]);
  });
});
