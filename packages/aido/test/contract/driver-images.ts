import { isAidoError } from "@aido/sdk/protocol";
import { expect, onTestFinished, test } from "vitest";
import type { ImageBuild } from "../../src/core/driver/driver-images.ts";
import type { DriverBackend, DriverSuite } from "./driver-backend.ts";
import { launch } from "./launch.ts";

const MIB = 1_048_576;
let made = 0;

export function imagesContract({ make, isolates }: DriverSuite): void {
  test("S3-85 what is built can be found, listed, used and removed", async ({ skip }) => {
    await using backend = await make();
    const { driver } = backend;
    skip(!driver.images.canBuild, "this driver has no images");
    const steps: string[] = [];
    const build = await buildOf(backend, {
      dockerfile: `FROM ${backend.image}\nCOPY note.txt tool.sh /opt/\n`,
      files: [
        { path: "note.txt", content: Buffer.from("from the request\n"), executable: false },
        { path: "tool.sh", content: Buffer.from("#!/bin/sh\necho tool\n"), executable: true },
      ],
    });
    const image = await driver.images.build(build, { onProgress: (step) => steps.push(step) });
    expect(image).toMatchObject({ tags: [build.tag], isOwn: true });
    expect(image.labels).toMatchObject(build.labels);
    expect(image.bytes).toBeGreaterThan(0);
    expect(steps.join("\n")).toContain("COPY note.txt");
    expect(await driver.images.find(build.tag)).toMatchObject({ id: image.id });
    expect(await driver.images.find(image.id)).toMatchObject({ id: image.id });
    expect((await driver.images.list()).map(({ id }) => id)).toContain(image.id);
    await driver.ensureImage(build.tag);
    const { id, sh } = await launch(backend, { image: build.tag });
    if (isolates) {
      expect((await sh("cat /opt/note.txt; /opt/tool.sh")).stdout.toString()).toBe(
        "from the request\ntool\n",
      );
    }
    await expect(driver.images.remove(build.tag)).rejects.toSatisfy((error) =>
      isAidoError(error, "IMAGE_IN_USE"),
    );
    await driver.remove(id);
    await driver.images.remove(build.tag);
    await driver.images.remove(build.tag);
    expect(await driver.images.find(build.tag)).toBeUndefined();
  });

  test("S3-85 a build that fails says what it said last and leaves no image", async ({ skip }) => {
    await using backend = await make();
    const { images } = backend.driver;
    skip(!images.canBuild, "this driver has no images");
    const dockerfile = `FROM ${backend.image}\nENV MADE=${Date.now()}\nRUN false`;
    const build = await buildOf(backend, { dockerfile });
    const failure = await images.build(build).catch((error: unknown) => error);
    expect(failure).toSatisfy((error) => isAidoError(error, "IMAGE_BUILD_FAILED"));
    expect(failure).toMatchObject({ details: { log: expect.stringContaining("RUN false") } });
    expect(await images.find(build.tag)).toBeUndefined();
  });

  test("S3-85 an image above the limit is not kept", async ({ skip }) => {
    await using backend = await make();
    const { images } = backend.driver;
    skip(!images.canBuild, "this driver has no images");
    const build = await buildOf(backend, { maxBytes: 1 });
    await expect(images.build(build)).rejects.toSatisfy((error) => isAidoError(error, "IMAGE_BUILD_FAILED"));
    expect(await images.find(build.tag)).toBeUndefined();
  });

  test("a build that is aborted before it begins makes nothing", async ({ skip }) => {
    await using backend = await make();
    const { images } = backend.driver;
    skip(!images.canBuild, "this driver has no images");
    const build = await buildOf(backend);
    const reason = new Error("enough");
    await expect(images.build(build, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(await images.find(build.tag)).toBeUndefined();
  });

  test("what another scope has built, or nobody, is not removed", async ({ skip }) => {
    await using backend = await make();
    const { images } = backend.driver;
    skip(!images.canBuild, "this driver has no images");
    await backend.driver.ensureImage(backend.image);
    await expect(images.remove(backend.image)).rejects.toSatisfy((error) => isAidoError(error, "FORBIDDEN"));
    expect(await images.find(backend.image)).toMatchObject({ isOwn: false });
    if (!isolates) return;
    const build = await buildOf(backend);
    await images.build(build);
    const other = (await backend.otherScope()).images;
    expect(await other.find(build.tag)).toMatchObject({ isOwn: false });
    await expect(other.remove(build.tag)).rejects.toSatisfy((error) => isAidoError(error, "FORBIDDEN"));
    expect(await images.find(build.tag)).toMatchObject({ isOwn: true });
  });

  test("a driver without images has one, and refuses to build and to remove", async ({ skip }) => {
    await using backend = await make();
    const { images } = backend.driver;
    skip(images.canBuild, "this driver has images");
    expect(await images.list()).toMatchObject([{ tags: [backend.image], isOwn: false }]);
    for (const attempt of [images.build(await buildOf(backend)), images.remove(backend.image)]) {
      await expect(attempt).rejects.toSatisfy((error) => isAidoError(error, "UNSUPPORTED"));
    }
  });
}

/** A build of its own name, removed when the test ends. */
export async function buildOf(
  backend: DriverBackend,
  changes: Partial<ImageBuild> = {},
): Promise<ImageBuild> {
  made += 1;
  const tag = `aido.local/contract:${process.pid}-${made}`;
  const reopened = await backend.reopen();
  onTestFinished(async () => {
    await reopened.images.remove(tag).catch(() => undefined);
  });
  return {
    tag,
    dockerfile: `FROM ${backend.image}\nENV CONTRACT=${process.pid}-${made}\n`,
    files: [],
    labels: { "contract.test": "yes" },
    memoryBytes: 256 * MIB,
    maxBytes: 1024 * MIB,
    network: "none",
    ...changes,
  };
}
