import { createHash } from "node:crypto";
import { AidoError } from "@aido/sdk/protocol";
import type { BuildOptions, DriverImage, DriverImages, ImageBuild } from "../../core/driver/driver-images.ts";

/** Images in memory. A build runs nothing; one whose Dockerfile says `RUN false` fails. */
export class FakeImages implements DriverImages {
  readonly #images = new Map<string, DriverImage>();
  readonly #isUsed: (image: string) => boolean;
  readonly canBuild = true;
  /** Every build that was asked for. */
  readonly builds: ImageBuild[] = [];

  constructor(images: readonly string[], isUsed: (image: string) => boolean) {
    this.#isUsed = isUsed;
    for (const tag of images) this.#images.set(tag, fakeImage(tag, {}, false));
  }

  has(image: string): boolean {
    return this.#images.has(image);
  }

  add(image: string): void {
    if (!this.has(image)) this.#images.set(image, fakeImage(image, {}, false));
  }

  async list(): Promise<readonly DriverImage[]> {
    return [...this.#images.values()];
  }

  async find(image: string): Promise<DriverImage | undefined> {
    return this.#images.get(image) ?? [...this.#images.values()].find(({ id }) => id === image);
  }

  async build(build: ImageBuild, options: BuildOptions = {}): Promise<DriverImage> {
    options.signal?.throwIfAborted();
    this.builds.push(build);
    for (const line of build.dockerfile.trim().split("\n")) {
      options.onProgress?.(line);
      if (line === "RUN false") {
        throw new AidoError("IMAGE_BUILD_FAILED", "The build failed: RUN false", { details: { log: line } });
      }
    }
    const image = fakeImage(build.tag, build.labels, true);
    if (image.bytes > build.maxBytes) throw new AidoError("IMAGE_BUILD_FAILED", "The image is too large");
    this.#images.set(build.tag, image);
    return image;
  }

  async remove(image: string): Promise<void> {
    const found = await this.find(image);
    if (found === undefined) return;
    if (!found.isOwn) throw new AidoError("FORBIDDEN", `Image ${image} was not built here`);
    if (found.tags.some(this.#isUsed)) throw new AidoError("IMAGE_IN_USE", `A sandbox uses image ${image}`);
    for (const tag of found.tags) this.#images.delete(tag);
  }
}

function fakeImage(tag: string, labels: Readonly<Record<string, string>>, isOwn: boolean): DriverImage {
  const id = `sha256:${createHash("sha256").update(tag).update(JSON.stringify(labels)).digest("hex")}`;
  return { id, tags: [tag], bytes: 1_000_000, createdAt: new Date(0), user: undefined, isOwn, labels };
}
