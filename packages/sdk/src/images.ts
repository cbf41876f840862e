import type { Progress } from "./aido.ts";

/** What sandboxes are made of. */
export interface Images {
  /** Short names, and every image that the driver has. */
  list(signal?: AbortSignal): Promise<ImageList>;
  /** Makes an image available before the first sandbox needs it; at once when it is there. */
  pull(image: string, options?: { signal?: AbortSignal; onProgress?: Progress }): Promise<ImageInfo>;
  /** The same request again gives the image that is there. An abort ends the build and leaves no image. */
  build(request: BuildImage, options?: { signal?: AbortSignal; onProgress?: Progress }): Promise<BuiltImage>;
  /** Only what was built here can be removed here; what a sandbox still uses cannot. */
  remove(image: string, signal?: AbortSignal): Promise<void>;
}

export interface ImageList {
  aliases: readonly ImageAlias[];
  images: readonly ImageInfo[];
}

export interface ImageAlias {
  /** `@ai-sandbox/python`; the last part alone means the same. */
  alias: string;
  image: string;
  /** Whether a sandbox can start from it without a pull. */
  isHere: boolean;
}

export interface ImageInfo {
  /** What a sandbox names as its image. */
  ref: string;
  id: string;
  /** Every name it has. */
  tags: readonly string[];
  bytes: number;
  createdAt: Date | undefined;
  /** Made by `build`. */
  isBuilt: boolean;
  labels: Readonly<Record<string, string>>;
}

export interface BuiltImage extends ImageInfo {
  /** Of all that the build was given; the same checksum is the same image. */
  checksum: string;
  /** Whether it was there already, so that nothing was built. */
  isCached: boolean;
}

/** Either a Dockerfile or a base with packages. Nothing but what is in here can be copied into the image. */
export interface BuildImage {
  /** Lower-case letters, digits, dots and dashes; the image is then `aido.local/<name>:<checksum>`. */
  name?: string | undefined;
  dockerfile?: string | undefined;
  /** An image or a short name such as `python`. */
  base?: string | undefined;
  packages?: ImagePackages | undefined;
  /** By their path in the build: text, or bytes as base64. */
  files?: Readonly<Record<string, BuildFile>> | undefined;
  labels?: Readonly<Record<string, string>> | undefined;
}

export type BuildFile = string | { base64: string; executable?: boolean | undefined };

export interface ImagePackages {
  apt?: readonly string[] | undefined;
  pip?: readonly string[] | undefined;
  npm?: readonly string[] | undefined;
}
