import type { BuildImage, BuiltImage, ImageInfo, ImageList, Images, Progress } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import type { Driver } from "../driver/driver.ts";
import type { ContextFile, DriverImage } from "../driver/driver-images.ts";
import { resolveImage } from "../sandbox/resolve-image.ts";
import { ALIAS_PREFIX, LANGUAGE_IMAGES } from "./aliases.ts";
import type { BaseRule } from "./base-rule.ts";
import { buildChecksum, contextFiles } from "./build-context.ts";
import { isOwnImage, OWN_IMAGES } from "./own-images.ts";
import { packageDockerfile } from "./package-dockerfile.ts";
import { readBases } from "./read-dockerfile.ts";

export interface BuildLimits {
  readonly timeoutMs: number;
  readonly memoryBytes: number;
  readonly maxBytes: number;
  readonly network: "bridge" | "none";
}

export interface ImageServiceDeps {
  readonly driver: Pick<Driver, "name" | "ensureImage" | "images">;
  readonly mayStartFrom: BaseRule;
  readonly limits: BuildLimits;
}

interface Options {
  signal?: AbortSignal | undefined;
  onProgress?: Progress | undefined;
}

export interface ServiceBuildOptions extends Options {
  /** Asked for each image that the build starts from; rejects for one that whoever asked may not have. */
  mayUse?: ((base: string) => Promise<void>) | undefined;
}

interface Plan {
  tag: string;
  checksum: string;
  dockerfile: string;
  files: readonly ContextFile[];
  labels: Readonly<Record<string, string>>;
}

const CHECKSUM_LABEL = "dev.aido.checksum";
const LABELS_LABEL = "dev.aido.labels";
const TAG_DIGITS = 16;
const NAME = /^[a-z0-9]+([.-][a-z0-9]+)*$/;

/** The images of the driver, and those that are built on it. */
export class ImageService implements Images {
  readonly #deps: ImageServiceDeps;

  constructor(deps: ImageServiceDeps) {
    this.#deps = deps;
  }

  async list(signal?: AbortSignal): Promise<ImageList> {
    const found = await this.#deps.driver.images.list(signal);
    const here = new Set(found.flatMap(({ tags }) => tags));
    const aliases = Object.entries(LANGUAGE_IMAGES).map(([language, image]) => ({
      alias: `${ALIAS_PREFIX}${language}`,
      image,
      isHere: here.has(image),
    }));
    return { aliases, images: found.map(toInfo) };
  }

  async pull(image: string, options: Options = {}): Promise<ImageInfo> {
    const wanted = resolveImage(image);
    const { driver } = this.#deps;
    await driver.ensureImage(wanted, given(options));
    return toInfo(await this.#get(wanted, options.signal));
  }

  async build(request: BuildImage, options: ServiceBuildOptions = {}): Promise<BuiltImage> {
    const { limits, driver } = this.#deps;
    this.#refuseWithout("build");
    const late = AbortSignal.timeout(limits.timeoutMs);
    const signal = options.signal === undefined ? late : AbortSignal.any([options.signal, late]);
    try {
      const plan = await this.#plan(request, { ...options, signal });
      const known = await this.#built(plan, signal);
      if (known !== undefined) return { ...toInfo(known), checksum: plan.checksum, isCached: true };
      const image = await driver.images.build(
        {
          tag: plan.tag,
          dockerfile: plan.dockerfile,
          files: plan.files,
          labels: { [CHECKSUM_LABEL]: plan.checksum, [LABELS_LABEL]: JSON.stringify(plan.labels) },
          memoryBytes: limits.memoryBytes,
          maxBytes: limits.maxBytes,
          network: limits.network,
        },
        { signal, onProgress: options.onProgress },
      );
      return { ...toInfo(image), checksum: plan.checksum, isCached: false };
    } catch (thrown) {
      if (!late.aborted || options.signal?.aborted === true) throw thrown;
      throw new AidoError(
        "IMAGE_BUILD_FAILED",
        `The build took longer than ${limits.timeoutMs / 1000} s and was ended`,
        { hint: "Install less, or raise images.buildTimeout.", cause: thrown },
      );
    }
  }

  async remove(image: string, signal?: AbortSignal): Promise<void> {
    this.#refuseWithout("remove");
    const found = await this.#get(image, signal);
    if (!isBuilt(found)) {
      throw new AidoError("FORBIDDEN", `Image ${image} was not built by this aido`, {
        hint: `Remove it with the engine's own tools, for example \`docker rmi ${image}\`.`,
        details: { image },
      });
    }
    await this.#deps.driver.images.remove(refOf(found), signal);
  }

  /** Raises IMAGE_NOT_FOUND when the driver does not have it. */
  async find(image: string, signal?: AbortSignal): Promise<ImageInfo> {
    return toInfo(await this.#get(image, signal));
  }

  #refuseWithout(verb: string): void {
    const { driver } = this.#deps;
    if (driver.images.canBuild) return;
    throw new AidoError("UNSUPPORTED", `The ${driver.name} driver has no images to ${verb}`, {
      hint: "Use Docker for that: add `--driver docker`.",
    });
  }

  async #plan(request: BuildImage, options: ServiceBuildOptions): Promise<Plan> {
    const { name = "image", labels = {} } = request;
    if (!NAME.test(name) || name.length > 63) {
      throw new AidoError("VALIDATION_ERROR", `${JSON.stringify(name.slice(0, 80))} cannot name an image`, {
        hint: "Use lower-case letters, digits, dots and dashes.",
        details: { field: "name" },
      });
    }
    const files = contextFiles(request.files);
    const dockerfile = await this.#dockerfile(request, options);
    const checksum = buildChecksum(dockerfile, files, labels);
    return {
      tag: `${OWN_IMAGES}${name}:${checksum.slice(0, TAG_DIGITS)}`,
      checksum,
      dockerfile,
      files,
      labels,
    };
  }

  /** What the build starts from is here when this returns, so that the build itself asks no registry. */
  async #dockerfile(
    { dockerfile, base, packages }: BuildImage,
    options: ServiceBuildOptions,
  ): Promise<string> {
    const { driver, mayStartFrom } = this.#deps;
    if ((dockerfile === undefined) === (base === undefined)) {
      throw new AidoError("VALIDATION_ERROR", "A build takes either a Dockerfile or a base with packages", {
        hint: "Give `dockerfile`, or `base` and `packages`.",
      });
    }
    const bases = dockerfile === undefined ? [resolveImage(base ?? "")] : readBases(dockerfile);
    for (const image of bases) {
      mayStartFrom(image);
      await options.mayUse?.(image);
    }
    if (dockerfile !== undefined) {
      for (const image of bases) await driver.ensureImage(image, given(options));
      return dockerfile;
    }
    const image = bases[0] ?? "";
    // The names are checked before anything is fetched.
    packageDockerfile(image, packages ?? {}, undefined);
    await driver.ensureImage(image, given(options));
    return packageDockerfile(image, packages ?? {}, (await this.#get(image, options.signal)).user);
  }

  async #built({ tag, checksum }: Plan, signal: AbortSignal): Promise<DriverImage | undefined> {
    const known = await this.#deps.driver.images.find(tag, signal);
    return known?.isOwn === true && known.labels[CHECKSUM_LABEL] === checksum ? known : undefined;
  }

  async #get(image: string, signal: AbortSignal | undefined): Promise<DriverImage> {
    const found = await this.#deps.driver.images.find(image, signal);
    if (found !== undefined) return found;
    throw new AidoError("IMAGE_NOT_FOUND", `There is no image ${JSON.stringify(image.slice(0, 200))} here`, {
      hint: "`aido image list` shows them.",
      details: { image: image.slice(0, 200) },
    });
  }
}

/** A name of aido's own is given by builds alone, so labels that an image brought along cannot claim it. */
function isBuilt(image: DriverImage): boolean {
  return image.isOwn && image.tags.some(isOwnImage);
}

function refOf(image: DriverImage): string {
  return image.tags.find(isOwnImage) ?? image.tags[0] ?? image.id;
}

function toInfo(image: DriverImage): ImageInfo {
  const { id, tags, bytes, createdAt } = image;
  const labels = isBuilt(image) ? parseLabels(image.labels[LABELS_LABEL]) : {};
  return { ref: refOf(image), id, tags, bytes, createdAt, isBuilt: isBuilt(image), labels };
}

function parseLabels(text: string | undefined): Readonly<Record<string, string>> {
  return text === undefined ? {} : (JSON.parse(text) as Record<string, string>);
}

function given({ signal, onProgress }: Options): { signal?: AbortSignal; onProgress?: Progress } {
  return { ...(signal && { signal }), ...(onProgress && { onProgress }) };
}
