import { isAidoError } from "@aido/sdk/protocol";
import { describe, expect, test } from "vitest";
import { ApiBed } from "../../test/server/api-bed.ts";
import { readEvents } from "../../test/server/read-events.ts";

const IMAGES = ["debian:12", "python:3.12-slim"];
const BUILD = { name: "tools", dockerfile: "FROM debian:12\nRUN true" };
const path = (ref: string) => `/api/images/${encodeURIComponent(ref)}`;

describe("images over HTTP", () => {
  test("S3-81 S3-85 lists, pulls, builds once, makes a sandbox of it, and removes", async () => {
    await using bed = await ApiBed.open({ images: IMAGES });
    const list = await bed.get("/api/images");
    expect(list.json.aliases).toContainEqual({
      alias: "@ai-sandbox/python",
      image: "python:3.12-slim",
      isHere: true,
    });
    expect(list.json.images.map(({ ref }: { ref: string }) => ref)).toEqual(IMAGES);
    expect((await bed.post("/api/images", { pull: "@ai-sandbox/python" })).json).toMatchObject({
      ref: "python:3.12-slim",
      isBuilt: false,
    });
    expect((await bed.post("/api/images", { pull: "not/here:1" })).json.error.code).toBe("IMAGE_NOT_FOUND");
    const built = await bed.post("/api/images", BUILD);
    expect(built.json).toMatchObject({ isBuilt: true, isCached: false, labels: {} });
    expect((await bed.post("/api/images", BUILD)).json).toMatchObject({
      ref: built.json.ref,
      isCached: true,
    });
    const id = await bed.sandbox(undefined, { image: built.json.ref });
    expect((await bed.call("DELETE", path(built.json.ref))).json.error.code).toBe("IMAGE_IN_USE");
    await bed.call("DELETE", `/api/sandbox/${id}`);
    expect((await bed.call("DELETE", path(built.json.ref))).json).toEqual({
      status: "deleted",
      ref: built.json.ref,
    });
    expect((await bed.call("DELETE", path("debian:12"))).status).toBe(403);
  });

  test("S3-85 steps are told as events, and so is the failure", async () => {
    await using bed = await ApiBed.open({ images: IMAGES });
    const headers = { accept: "text/event-stream" };
    const good = await readEvents(await bed.fetch("POST", "/api/images", { body: BUILD, headers }));
    expect(good).toMatchObject([
      { event: "progress", data: { step: "FROM debian:12" } },
      { event: "progress", data: { step: "RUN true" } },
      { event: "end", data: { isBuilt: true } },
    ]);
    const body = { dockerfile: "FROM debian:12\nRUN false" };
    const bad = await readEvents(await bed.fetch("POST", "/api/images", { body, headers }));
    expect(bad.at(-1)).toMatchObject({ event: "error", data: { error: { code: "IMAGE_BUILD_FAILED" } } });
  });

  test("S3-85 the SDK's client does the same, and its errors are the server's", async () => {
    await using bed = await ApiBed.open({ images: IMAGES });
    const { images } = bed.client();
    const steps: string[] = [];
    const built = await images.build(
      { ...BUILD, files: { "a/b": "text", c: { base64: "AAE=" } } },
      { onProgress: (step) => steps.push(step) },
    );
    expect(steps).toEqual(["FROM debian:12", "RUN true"]);
    expect(built).toMatchObject({ isCached: false, createdAt: new Date(0) });
    expect(bed.driver.images.builds[0]?.files).toMatchObject([
      { path: "a/b", content: Buffer.from("text") },
      { path: "c", content: Buffer.from([0, 1]) },
    ]);
    expect(await images.pull("debian:12")).toMatchObject({ ref: "debian:12" });
    expect((await images.list()).images).toHaveLength(3);
    await images.remove(built.ref);
    for (const attempt of [images.remove(built.ref), images.pull("not/here")]) {
      await expect(attempt).rejects.toSatisfy((error) => isAidoError(error, "IMAGE_NOT_FOUND"));
    }
  });

  test("S3-85 by default only administrators build; a setting lets others, or nobody", async () => {
    for (const [imageBuilders, write, admin] of [
      ["admin", 403, 200],
      ["write", 200, 200],
      ["nobody", 403, 403],
    ] as const) {
      await using bed = await ApiBed.open({ images: IMAGES, guarded: true, imageBuilders });
      const keys = [await bed.key("a"), await bed.key("b", { scopes: ["admin"] })];
      const statuses = [];
      for (const key of keys) statuses.push((await bed.post("/api/images", BUILD, { key })).status);
      expect([imageBuilders, ...statuses]).toEqual([imageBuilders, write, admin]);
    }
  });

  test("S3-85 a build is its owner's: others neither see, use, build on nor remove it", async () => {
    await using bed = await ApiBed.open({ images: IMAGES, guarded: true, imageBuilders: "write" });
    const [mine, theirs] = [await bed.key("mine"), await bed.key("theirs")];
    const { ref, id } = (await bed.post("/api/images", BUILD, { key: mine })).json;
    const seen = async (key: string) =>
      (await bed.get("/api/images", { key })).json.images.map((image: { ref: string }) => image.ref);
    expect(await seen(mine)).toContain(ref);
    expect(await seen(theirs)).not.toContain(ref);
    const ask = { key: theirs };
    for (const image of [ref, id]) {
      const attempts = [
        bed.post("/api/sandbox", { image }, ask),
        bed.post("/api/jobs/SANDBOX_CREATE", { image }, ask),
        bed.post("/api/images", { pull: image }, ask),
        bed.post("/api/images", { dockerfile: `FROM ${image}` }, ask),
        bed.call("DELETE", path(image), ask),
      ];
      for (const attempt of attempts) expect((await attempt).json.error.code).toBe("IMAGE_NOT_FOUND");
    }
    // The same request of another owner is another image.
    expect((await bed.post("/api/images", BUILD, ask)).json.ref).not.toBe(ref);
    await bed.sandbox(mine, { image: ref });
  });

  test.each([
    ["nothing", {}],
    ["both", { pull: "a", dockerfile: "FROM a" }],
    ["a host path as context", { dockerfile: "FROM debian:12", context: "/etc" }],
    ["a file above the build", { dockerfile: "FROM debian:12", files: { "../x": "" } }],
    ["content that is not base64", { dockerfile: "FROM debian:12", files: { x: { base64: "?" } } }],
    ["a reserved label", { dockerfile: "FROM debian:12", labels: { "dev.aido.owner": "x" } }],
  ])("S3-85 %s is refused", async (_, body) => {
    await using bed = await ApiBed.open({ images: IMAGES });
    expect((await bed.post("/api/images", body)).status).toBe(400);
    expect(bed.driver.images.builds).toEqual([]);
  });
});
