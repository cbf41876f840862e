import { expect, test } from "vitest";
import { sandboxBed } from "../../../test/sandbox/sandbox-bed.ts";
import { tierBed } from "../../../test/tier/tier-bed.ts";
import { SandboxTokens } from "../access/sandbox-tokens.ts";
import { sidecarImage } from "./sidecar-image.ts";

const UUID = /^sandbox-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

test("S2-5 S2-70 S2-71 a sidecar sandbox has an id, an address, a workspace and a token of its own", async () => {
  await using bed = sandboxBed();
  const one = await bed.sandboxes.create({ profile: "sidecar" });
  const two = await bed.sandboxes.create({ profile: "sidecar" });
  expect(one).toMatchObject({ id: expect.stringMatching(UUID), workdir: "/home/agent" });
  expect(one.sidecarUrl).toBe(`http://127.0.0.1:3000/sidecar/${one.id}`);
  expect(one.token).toMatch(/^[0-9a-f]{64}$/);
  expect(two.token).not.toBe(one.token);
  expect(await bed.driver.inspect(one.id)).toMatchObject({ user: { uid: 1000, gid: 1000 } });
  expect(await bed.sandboxes.get(one.id)).not.toHaveProperty("token");
});

test("S2-10 each sidecar sandbox has one container, named after it", async () => {
  await using bed = sandboxBed();
  const one = await bed.sandboxes.create({ profile: "sidecar" });
  await bed.sandboxes.stop(one.id);
  await bed.sandboxes.start(one.id);
  expect((await bed.driver.list()).map(({ sandboxId }) => sandboxId)).toEqual([one.id]);
});

test("S2-58 S2-61 S2-115 its life ends it while it runs and begins anew at each start; asleep it is left to its tier", async () => {
  await using bed = sandboxBed();
  const sidecar = await bed.sandboxes.create({ profile: "sidecar", ttlMs: 60_000 });
  const plain = await bed.sandboxes.create({ ttlMs: 60_000 });
  await bed.clock.advance(50_000);
  await bed.sandboxes.stop(sidecar.id);
  await bed.sandboxes.stop(plain.id);
  await bed.clock.advance(120_000);
  await bed.sandboxes.expire();
  expect(await bed.sandboxes.get(sidecar.id)).toMatchObject({ state: "stopped", expiresAt: undefined });
  expect((await bed.store.sandboxes.get(plain.id))?.state).toBe("deleted");
  const again = await bed.sandboxes.start(sidecar.id);
  expect(again.expiresAt).toEqual(new Date(bed.clock.now().getTime() + 60_000));
  await bed.clock.advance(61_000);
  await bed.sandboxes.expire();
  expect((await bed.store.sandboxes.get(sidecar.id))?.state).toBe("deleted");
});

test("other profiles have no sidecar unless a token is given", async () => {
  await using bed = sandboxBed();
  const plain = await bed.sandboxes.create({});
  expect(plain).toMatchObject({ token: undefined, sidecarUrl: undefined });
  const chosen = await bed.sandboxes.create({ token: "my-own-and-secret" });
  expect(chosen).toMatchObject({
    token: "my-own-and-secret",
    sidecarUrl: expect.stringContaining(chosen.id),
  });
  expect(await new SandboxTokens(bed.store.sandboxes).verify(chosen.id, "my-own-and-secret")).toBe(true);
});

test("S2-72 a token survives stop and start, and goes with the sandbox", async () => {
  await using bed = sandboxBed();
  const tokens = new SandboxTokens(bed.store.sandboxes);
  const { id, token = "" } = await bed.sandboxes.create({ profile: "sidecar" });
  await bed.sandboxes.stop(id);
  expect(await tokens.verify(id, token)).toBe(true);
  await bed.sandboxes.start(id);
  expect(await tokens.verify(id, token)).toBe(true);
  await bed.sandboxes.destroy(id);
  expect(await tokens.verify(id, token)).toBe(false);
  expect((await bed.store.sandboxes.get(id))?.tokenHash).toBeUndefined();
});

test("S2-72 a new token takes the place of a lost one, on any profile", async () => {
  await using bed = sandboxBed();
  const tokens = new SandboxTokens(bed.store.sandboxes);
  const made = await bed.sandboxes.create({ profile: "sidecar" });
  const issued = await bed.sandboxes.issueToken(made.id);
  expect(issued).toEqual({
    sandboxId: made.id,
    sidecarUrl: made.sidecarUrl,
    token: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  expect(await tokens.verify(made.id, made.token ?? "")).toBe(false);
  expect(await tokens.verify(made.id, issued.token)).toBe(true);
  expect(await bed.events(made.id)).toContain("sandbox.token");
  const plain = await bed.sandboxes.create({ name: "plain" });
  expect(await bed.sandboxes.issueToken("plain", "mine-of-16-chars")).toMatchObject({
    sandboxId: plain.id,
    token: "mine-of-16-chars",
  });
  await expect(bed.sandboxes.issueToken("plain", "two words")).rejects.toMatchObject({
    code: "VALIDATION_ERROR",
  });
  await expect(bed.sandboxes.issueToken("nobody")).rejects.toMatchObject({ code: "CONTAINER_NOT_FOUND" });
});

test.each(["", "x".repeat(15), "with space between words", "line\nbreak", "ünicode", "x".repeat(257)])(
  "the token %j is refused without being repeated",
  async (token) => {
    await using bed = sandboxBed();
    const failure = await bed.sandboxes.create({ token }).catch((thrown: unknown) => thrown as Error);
    expect(failure).toMatchObject({ code: "VALIDATION_ERROR", details: { field: "token" } });
    if (token !== "") expect((failure as Error).message).not.toContain(token);
  },
);

test("a profile whose network the driver lacks gets none; one that is asked for is refused", async () => {
  await using bed = sandboxBed({ capabilities: { networks: ["none"] } });
  expect(await bed.sandboxes.create({ profile: "sidecar" })).toMatchObject({ network: "none" });
  const asked = bed.sandboxes.create({ profile: "sidecar", network: "bridge" });
  await expect(asked).rejects.toMatchObject({ code: "UNSUPPORTED" });
});

test("S2-105 S2-109 the sidecar's image is the configured one, else one that the driver has", async () => {
  await using bed = sandboxBed();
  const able = await bed.driver.capabilities();
  const having = (...images: string[]) => ({ hasImage: async (image: string) => images.includes(image) });
  const agents = "ghcr.io/tangle-network/sidecar:latest";
  expect(await sidecarImage(having(agents), able, {})).toBe(agents);
  expect(await sidecarImage(having("ubuntu:22.04"), able, {})).toBe("ubuntu:22.04");
  expect(await sidecarImage(having(), able, {})).toBe("ubuntu:22.04");
  expect(await sidecarImage(having("ubuntu:22.04"), able, { image: agents })).toBe(agents);
  expect(await sidecarImage(having(agents), able, { image: "my:1" })).toBe("my:1");
  expect(await sidecarImage(having(), able, { defaultImage: "all:1" })).toBe("all:1");
  expect(await sidecarImage(having(), { ...able, images: false }, { image: "my:1" })).toBe("host");
});

test("S2-109 what is not to be pulled is not, whoever names it and whenever it is needed", async () => {
  await using bed = tierBed({}, { pullSidecarImages: false });
  const there = new Set(["has:1"]);
  bed.driver.hasImage = async (image) => there.has(image);
  const pulled: string[] = [];
  bed.driver.ensureImage = async (image) => void pulled.push(image);
  const refused = { code: "IMAGE_NOT_FOUND", hint: expect.stringContaining("SIDECAR_PULL_IMAGE") };
  for (const image of [undefined, "no:1"])
    await expect(bed.sandboxes.create({ profile: "sidecar", image })).rejects.toMatchObject(refused);
  expect(await bed.store.sandboxes.list()).toEqual([]);
  await bed.sandboxes.create({ image: "no:1" });
  const prepared = await bed.sandboxes.prepare({ profile: "sidecar", image: "has:1" });
  const cold = await bed.stopped("cold", { profile: "sidecar", image: "has:1", workdir: "/work" });
  expect(pulled).toEqual(["no:1", "has:1"]);
  there.clear();
  await expect(bed.sandboxes.fetchImage(prepared.id)).rejects.toMatchObject(refused);
  await expect(bed.sandboxes.start(cold)).rejects.toMatchObject(refused);
  expect(await bed.record(cold)).toMatchObject({ state: "stopped", tier: "cold" });
  expect(pulled).toHaveLength(2);
  there.add("has:1");
  expect(await bed.sandboxes.start(cold)).toMatchObject({ state: "running" });
  expect(await bed.read(cold)).toBe(`files of ${cold}`);
});
