import { isAidoError } from "@aido/sdk/protocol";
import { expect, test } from "vitest";
import { FakeDriver, type FakeDriverOptions } from "../../drivers/fake/fake-driver.ts";
import { LocalImages } from "../../drivers/local/local-images.ts";
import { baseRule } from "./base-rule.ts";
import { type BuildLimits, ImageService } from "./image-service.ts";

const LIMITS: BuildLimits = { timeoutMs: 60_000, memoryBytes: 1 << 28, maxBytes: 1 << 30, network: "none" };

function serviceOn(
  options: FakeDriverOptions & { bases?: readonly string[]; limits?: Partial<BuildLimits> } = {},
): { driver: FakeDriver; service: ImageService } {
  const driver = new FakeDriver({ images: ["python:3.12-slim", "debian:12"], ...options });
  const limits = { ...LIMITS, ...options.limits };
  return {
    driver,
    service: new ImageService({ driver, mayStartFrom: baseRule(options.bases ?? []), limits }),
  };
}

test("S3-81 every language has a short name; the list says which are here", async () => {
  const { service } = serviceOn();
  const { aliases, images } = await service.list();
  expect(aliases.map(({ alias }) => alias.replace("@ai-sandbox/", ""))).toEqual(
    expect.arrayContaining(["python", "node", "bun", "go", "rust", "java", "ruby"]),
  );
  expect(aliases.filter(({ isHere }) => isHere)).toEqual([
    { alias: "@ai-sandbox/python", image: "python:3.12-slim", isHere: true },
  ]);
  expect(images).toMatchObject([{ ref: "python:3.12-slim", isBuilt: false }, { ref: "debian:12" }]);
});

test("S3-85 a build gets its limits, and the same build again is not built", async () => {
  const { driver, service } = serviceOn();
  const request = { name: "tools", dockerfile: "FROM debian:12\nCOPY a /a", files: { a: "1" } };
  const first = await service.build(request);
  expect(first).toMatchObject({
    ref: expect.stringMatching(/^aido\.local\/tools:[0-9a-f]{16}$/),
    checksum: expect.stringMatching(/^[0-9a-f]{64}$/),
    isBuilt: true,
    isCached: false,
  });
  const { memoryBytes, maxBytes, network } = LIMITS;
  expect(driver.images.builds).toMatchObject([{ memoryBytes, maxBytes, network }]);
  expect(await service.build(request)).toMatchObject({ ref: first.ref, isCached: true });
  expect(driver.images.builds).toHaveLength(1);
});

test.each([
  ["a file's content", { files: { a: "2" } }],
  ["a file's mode", { files: { a: { base64: "MQ==", executable: true } } }],
  ["a file's name", { files: { b: "1" } }],
  ["the Dockerfile", { dockerfile: "FROM debian:12\nCOPY a /b" }],
  ["a label", { labels: { team: "a" } }],
])("S3-85 another build when %s differs", async (_, change) => {
  const { service } = serviceOn();
  const request = { dockerfile: "FROM debian:12\nCOPY a /a", files: { a: "1" } };
  const one = await service.build(request);
  expect((await service.build({ ...request, ...change })).checksum).not.toBe(one.checksum);
});

test("S3-85 a base by its short name gets packages", async () => {
  const { driver, service } = serviceOn();
  await service.build({ base: "@ai-sandbox/python", packages: { pip: ["requests==2.32.3"] } });
  expect(driver.images.builds[0]?.dockerfile).toContain("FROM python:3.12-slim\n");
  expect(driver.images.builds[0]?.dockerfile).toContain("requests==2.32.3");
});

test("S3-85 only allowed bases are built from, copied-from images included", async () => {
  const { driver, service } = serviceOn({ bases: ["debian:*"] });
  await service.build({ dockerfile: "FROM debian:12" });
  const refused = [
    { dockerfile: "FROM python:3.12-slim" },
    { dockerfile: "FROM debian:12\nCOPY --from=python:3.12-slim /a /a" },
    { base: "python", packages: { pip: ["x"] } },
  ];
  for (const request of refused) {
    await expect(service.build(request)).rejects.toSatisfy((error) => isAidoError(error, "FORBIDDEN"));
  }
  expect(driver.images.builds).toHaveLength(1);
});

test.each([
  ["/etc/passwd", "INVALID_PATH"],
  ["../x", "INVALID_PATH"],
  ["a/../../x", "INVALID_PATH"],
  ["a//b", "INVALID_PATH"],
  ["a\0b", "INVALID_PATH"],
  ["Dockerfile", "INVALID_PATH"],
])("S3-85 the file %j is refused", async (path, code) => {
  const { service } = serviceOn();
  const request = { dockerfile: "FROM debian:12", files: { [path]: "x" } };
  await expect(service.build(request)).rejects.toSatisfy((error) => isAidoError(error, code as never));
});

test("S3-85 a build that takes too long is ended and says so", async () => {
  const { driver, service } = serviceOn({ limits: { timeoutMs: 20 } });
  driver.images.build = (_, options) =>
    new Promise((_resolve, reject) => {
      options?.signal?.addEventListener("abort", () => reject(options.signal?.reason));
    });
  await expect(service.build({ dockerfile: "FROM debian:12" })).rejects.toMatchObject({
    code: "IMAGE_BUILD_FAILED",
    message: expect.stringContaining("longer than 0.02 s"),
  });
});

test("a request with both or neither kind of build is refused, and so is a strange name", async () => {
  const { service } = serviceOn();
  for (const request of [
    {},
    { dockerfile: "FROM debian:12", base: "debian:12" },
    { dockerfile: "FROM debian:12", name: "../x" },
  ]) {
    await expect(service.build(request)).rejects.toSatisfy((error) => isAidoError(error, "VALIDATION_ERROR"));
  }
});

test("S3-85 only what was built here is removed", async () => {
  const { service } = serviceOn();
  const { ref } = await service.build({ dockerfile: "FROM debian:12" });
  await expect(service.remove("debian:12")).rejects.toSatisfy((error) => isAidoError(error, "FORBIDDEN"));
  await service.remove(ref);
  await expect(service.remove(ref)).rejects.toSatisfy((error) => isAidoError(error, "IMAGE_NOT_FOUND"));
});

test("a driver without images refuses builds before anything is fetched", async () => {
  const driver = {
    name: "local",
    images: new LocalImages(),
    ensureImage: () => Promise.reject(new Error("asked for an image")),
  };
  const service = new ImageService({ driver, mayStartFrom: baseRule([]), limits: LIMITS });
  for (const attempt of [service.build({ dockerfile: "FROM a" }), service.remove("host")]) {
    await expect(attempt).rejects.toSatisfy((error) => isAidoError(error, "UNSUPPORTED"));
  }
});
