import { sidecarDetailsReply, sidecarHealthReply } from "@aido/sdk/schemas";
import { expect, test } from "vitest";
import { SidecarBed } from "../../../test/server/sidecar-bed.ts";

const NOBODY = "/sidecar/sandbox-00000000-0000-4000-8000-000000000000";

test("S2-133 health is told without a token, and is bad when the sandbox does not run", async () => {
  await using bed = await SidecarBed.open({ guarded: true });
  const key = await bed.api.key("admin", { scopes: ["admin"] });
  const up = await bed.api.get(`/sidecar/${bed.id}/health`);
  expect(up.status).toBe(200);
  expect(sidecarHealthReply.parse(up.json)).toMatchObject({ status: "ok" });
  await bed.api.post(`/api/sandbox/${bed.id}/stop`, {}, { key });
  const down = await bed.api.get(`/sidecar/${bed.id}/health`);
  const nobody = await bed.api.get(`${NOBODY}/health`);
  expect([down.status, nobody.status]).toEqual([503, 503]);
  expect({ ...nobody.json, timestamp: 0 }).toEqual({ ...down.json, timestamp: 0 });
});

test("S2-133 details have memory, processes and age; a stopped sandbox and none look the same", async () => {
  await using bed = await SidecarBed.open();
  const up = await bed.api.get(`/sidecar/${bed.id}/health/detailed`);
  expect(sidecarDetailsReply.parse(up.json)).toMatchObject({
    status: "healthy",
    memory: { heapUsed: expect.any(Number) },
    process: { pid: 1 },
  });
  expect(up.json.uptime).toBeGreaterThanOrEqual(0);
  await bed.api.post(`/api/sandbox/${bed.id}/stop`, {});
  const down = await bed.api.get(`/sidecar/${bed.id}/health/detailed`);
  expect([down.status, down.json]).toEqual([503, { status: "unhealthy", uptime: 0 }]);
  expect((await bed.api.get(`${NOBODY}/health/detailed`)).text).toBe(down.text);
});

test("health costs no question to the engine, and details are told so often to one address", async () => {
  await using bed = await SidecarBed.open({ addressLimit: 3 });
  let asked = 0;
  const { inspect } = bed.api.driver;
  bed.api.driver.inspect = (id) => {
    asked += 1;
    return inspect.call(bed.api.driver, id);
  };
  for (let count = 0; count < 10; count += 1) {
    expect((await bed.api.get(`/sidecar/${bed.id}/health`)).status).toBe(200);
    expect((await bed.api.get("/health")).status).toBe(200);
  }
  expect(asked).toBe(0);
  const statuses: number[] = [];
  for (const path of [`/sidecar/${bed.id}/health/detailed`, "/ready", "/docs", "/ready"]) {
    statuses.push((await bed.api.get(path)).status);
  }
  expect(statuses).toEqual([200, 200, 200, 429]);
  const refused = await bed.api.get(`/sidecar/${bed.id}/health/detailed`);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
});

test("a sandbox without a sidecar has no health to tell", async () => {
  await using bed = await SidecarBed.open();
  const plain = await bed.api.sandbox();
  expect((await bed.api.get(`/sidecar/${plain}/health`)).status).toBe(503);
});
