import { expect, test } from "vitest";
import type {
  BaseRequest,
  EnsuredProject,
  ProjectRequest,
  SwarmImages,
} from "../../core/swarm/image/swarm-images.ts";
import { fakeContext } from "../testing/fake-context.ts";
import { buildSwarmImage } from "./swarm-image.ts";

const IMAGE: EnsuredProject = {
  image: "aimi-sandbox-shop:latest",
  id: "sha256:ab",
  checksum: "c",
  rebuilt: true,
  bytes: 3 * 1024 * 1024,
  slug: "shop",
  madeFrom: ["package-lock.json"],
  leftOut: ["evil\u001b[31m"],
};

function recording(answer: Partial<EnsuredProject> = {}) {
  const asked: (BaseRequest | ProjectRequest)[] = [];
  const swarmImages: SwarmImages = {
    ensureBase: async (request = {}) => {
      asked.push(request);
      const { image, id, checksum, rebuilt, bytes } = { ...IMAGE, ...answer };
      return { image, id, checksum, rebuilt, bytes };
    },
    ensureProject: async (request) => {
      asked.push(request);
      return { ...IMAGE, ...answer };
    },
  };
  return { asked, swarmImages };
}

test("S1-3 the project's image is made and named, with what was left out", async () => {
  const { asked, swarmImages } = recording();
  const context = fakeContext({ swarmImages, cwd: "/home/me" });
  expect(await buildSwarmImage(context, "shop", { from: "debian", claude: false, force: true })).toBe(0);
  expect(asked).toMatchObject([
    { project: "/home/me/shop", ground: { kind: "debian" }, claude: false, force: true },
  ]);
  expect(context.stdout.text).toBe("aimi-sandbox-shop:latest\n");
  expect(context.stderr.text).toContain("Built from package-lock.json, 3 MiB.");
  expect(context.stderr.text).toContain("left out: evil");
  expect(context.stderr.text).not.toContain("\u001b");
});

test("S1-16 an image that is up to date is said to be, and --json has all", async () => {
  const { swarmImages } = recording({ rebuilt: false, leftOut: [] });
  const plain = fakeContext({ swarmImages });
  await buildSwarmImage(plain, undefined, {});
  expect(plain.stderr.text).toContain("Up to date, 3 MiB.");
  const json = fakeContext({ swarmImages, globals: { json: true } });
  await buildSwarmImage(json, undefined, {});
  expect(JSON.parse(json.stdout.text)).toEqual({ ...IMAGE, rebuilt: false, leftOut: [] });
});

test("S1-19 the base alone is made from any image", async () => {
  const { asked, swarmImages } = recording();
  const context = fakeContext({ swarmImages });
  await buildSwarmImage(context, undefined, { baseOnly: true, from: "registry.example/node:22" });
  expect(asked).toMatchObject([{ ground: { kind: "image", image: "registry.example/node:22" } }]);
  expect(asked[0]).not.toHaveProperty("project");
  await expect(buildSwarmImage(context, "x", { baseOnly: true })).rejects.toMatchObject({
    code: "VALIDATION_ERROR",
  });
});
