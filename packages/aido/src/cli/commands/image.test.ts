import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BuildImage, ImageInfo } from "@aido/sdk";
import { expect, onTestFinished, test } from "vitest";
import { fakeBackend } from "../testing/fake-backend.ts";
import { fakeContext } from "../testing/fake-context.ts";
import { buildImage, listImages, pullImage, removeImage } from "./image.ts";

const IMAGE: ImageInfo = {
  ref: "aido.local/tools:0123456789abcdef",
  id: `sha256:${"ab".repeat(32)}`,
  tags: ["aido.local/tools:0123456789abcdef"],
  bytes: 3 * 1024 * 1024,
  createdAt: new Date("2025-12-31T23:00:00Z"),
  isBuilt: true,
  labels: {},
};

function building(requests: BuildImage[]) {
  return fakeBackend({
    images: {
      build: async (request) => {
        requests.push(request);
        return { ...IMAGE, checksum: "c", isCached: false };
      },
    },
  });
}

async function directory(files: Readonly<Record<string, string>>): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "aido-image-"));
  onTestFinished(() => rm(path, { recursive: true }));
  for (const [name, content] of Object.entries(files)) await writeFile(join(path, name), content);
  return path;
}

test("S3-81 the list shows images with their sizes, and what short names mean", async () => {
  const aliases = [{ alias: "@ai-sandbox/go", image: "golang:1", isHere: false }];
  const backend = fakeBackend({ images: { list: async () => ({ aliases, images: [IMAGE] }) } });
  const context = fakeContext({ backend });
  await listImages(context);
  expect(context.stdout.text.split("\n").map((line) => line.split(/ {2,}/))).toEqual([
    ["IMAGE", "ID", "SIZE", "CREATED", "BUILT HERE"],
    [IMAGE.ref, "abababababab", "3 MiB", "1h ago", "yes"],
    [""],
    ["NAME", "MEANS", "HERE"],
    ["@ai-sandbox/go", "golang:1", "no"],
    [""],
  ]);
});

test("S3-85 build sends the directory's files, without dot-files, and its Dockerfile", async () => {
  const cwd = await directory({ Dockerfile: "FROM a", "app.py": "print(1)", ".env": "SECRET=1" });
  const requests: BuildImage[] = [];
  const context = fakeContext({ backend: building(requests), cwd });
  await buildImage(context, undefined, { name: "tools" });
  expect(context.stdout.text).toBe(`${IMAGE.ref}\n`);
  expect(requests).toMatchObject([
    {
      name: "tools",
      dockerfile: "FROM a",
      files: { "app.py": { base64: Buffer.from("print(1)").toString("base64"), executable: false } },
    },
  ]);
  expect(Object.keys(requests[0]?.files ?? {})).toEqual(["app.py"]);
});

test("S3-85 build with a base sends packages and no file", async () => {
  const requests: BuildImage[] = [];
  const context = fakeContext({ backend: building(requests) });
  await buildImage(context, undefined, { base: "python", pip: ["x"] });
  expect(requests).toMatchObject([{ base: "python", packages: { pip: ["x"] } }]);
  expect(requests[0]).not.toHaveProperty("files");
});

test("build without a Dockerfile, or with packages and no base, says what to write", async () => {
  const cwd = await directory({});
  const context = fakeContext({ backend: building([]), cwd });
  await expect(buildImage(context, undefined, {})).rejects.toMatchObject({ code: "INPUT_NOT_FOUND" });
  await expect(buildImage(context, undefined, { pip: ["x"] })).rejects.toMatchObject({
    code: "VALIDATION_ERROR",
    hint: expect.stringContaining("--base"),
  });
  await expect(buildImage(context, ".", { base: "a", pip: ["x"] })).rejects.toMatchObject({
    code: "VALIDATION_ERROR",
  });
});

test("pull and rm say what they did", async () => {
  const backend = fakeBackend({ images: { pull: async () => IMAGE, remove: async () => undefined } });
  const context = fakeContext({ backend });
  await pullImage(context, "tools");
  await removeImage(context, IMAGE.ref);
  expect(context.stdout.text).toBe(`${IMAGE.ref}\nRemoved ${IMAGE.ref}\n`);
});
