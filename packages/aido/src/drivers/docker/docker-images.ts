import { AidoError, isAidoError } from "@aido/sdk/protocol";
import type { BuildOptions, DriverImage, DriverImages, ImageBuild } from "../../core/driver/driver-images.ts";
import { buildImage } from "./build-image.ts";
import { checkImageName } from "./check-image-name.ts";
import type { Engine } from "./engine.ts";
import { LABEL } from "./labels.ts";

interface RawImage {
  Id: string;
  RepoTags?: string[] | null;
  Size?: number;
  Created?: number | string;
  Labels?: Record<string, string> | null;
  Config?: { User?: string; Labels?: Record<string, string> | null } | null;
}

const UNTAGGED = "<none>:<none>";

/** The images of one engine; those of its own scope by label. */
export class DockerImages implements DriverImages {
  readonly canBuild = true;
  readonly #engine: Engine;
  readonly #scope: string;

  constructor(engine: Engine, scope: string) {
    this.#engine = engine;
    this.#scope = scope;
  }

  async list(signal?: AbortSignal): Promise<readonly DriverImage[]> {
    const engine = this.#engine;
    const raw = (await engine.call(
      { doing: "listing images" },
      (abortSignal) => engine.docker.listImages({ abortSignal } as object),
      { signal },
    )) as RawImage[];
    return raw
      .map((image) => this.#toImage(image))
      .filter(({ tags, labels }) => tags.length > 0 && labels[LABEL.sandbox] === undefined);
  }

  async find(image: string, signal?: AbortSignal): Promise<DriverImage | undefined> {
    checkImageName(image);
    const engine = this.#engine;
    try {
      const raw = await engine.call(
        { doing: `looking for image ${image}`, image },
        (abortSignal) => engine.docker.getImage(image).inspect({ abortSignal } as object),
        { signal },
      );
      return this.#toImage(raw as unknown as RawImage);
    } catch (thrown) {
      if (isAidoError(thrown, "IMAGE_NOT_FOUND")) return undefined;
      throw thrown;
    }
  }

  async build(build: ImageBuild, options: BuildOptions = {}): Promise<DriverImage> {
    const labels = { ...build.labels, [LABEL.scope]: this.#scope };
    await buildImage(this.#engine, { ...build, labels }, options);
    const image = await this.find(build.tag, options.signal);
    if (image === undefined) throw new AidoError("IMAGE_BUILD_FAILED", "The engine lost the image it built");
    if (image.bytes <= build.maxBytes) return image;
    await this.#remove(build.tag);
    throw new AidoError(
      "IMAGE_BUILD_FAILED",
      `The image has ${image.bytes} bytes; ${build.maxBytes} are allowed`,
      { hint: "Install less, or raise images.buildSize.", details: { bytes: image.bytes } },
    );
  }

  async remove(image: string, signal?: AbortSignal): Promise<void> {
    const found = await this.find(image, signal);
    if (found === undefined) return;
    if (!found.isOwn) {
      throw new AidoError("FORBIDDEN", `Image ${image} was not built by this aido`, { details: { image } });
    }
    await this.#remove(image, signal);
  }

  async #remove(image: string, signal?: AbortSignal): Promise<void> {
    const engine = this.#engine;
    await engine.call(
      { doing: `removing image ${image}`, image },
      async (abortSignal) => {
        const removal = engine.docker.getImage(image).remove({ abortSignal } as object);
        await removal.catch((thrown: { statusCode?: number }) => {
          if (thrown.statusCode === 404) return;
          if (thrown.statusCode !== 409) throw thrown;
          throw new AidoError("IMAGE_IN_USE", `A sandbox or another image uses image ${image}`, {
            hint: "Destroy the sandboxes first; `aido ls` lists them.",
            details: { image },
            cause: thrown,
          });
        });
      },
      { signal },
    );
  }

  #toImage(raw: RawImage): DriverImage {
    const labels = raw.Labels ?? raw.Config?.Labels ?? {};
    const user = raw.Config?.User;
    return {
      id: raw.Id,
      tags: (raw.RepoTags ?? []).filter((tag) => tag !== UNTAGGED),
      bytes: raw.Size ?? 0,
      createdAt: toDate(raw.Created),
      user: user === undefined || user === "" ? undefined : user,
      isOwn: labels[LABEL.scope] === this.#scope && labels[LABEL.sandbox] === undefined,
      labels,
    };
  }
}

/** A list counts seconds, an inspection writes a date. */
function toDate(created: number | string | undefined): Date | undefined {
  if (created === undefined) return undefined;
  const date = new Date(typeof created === "number" ? created * 1000 : created);
  return Number.isNaN(date.getTime()) ? undefined : date;
}
