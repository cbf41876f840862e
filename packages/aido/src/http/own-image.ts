import type { ImageInfo } from "@aido/sdk";
import { AidoError, isAidoError } from "@aido/sdk/protocol";
import { isOwnImage } from "../core/image/own-images.ts";
import type { Principal } from "./auth/principal.ts";
import { isOwner } from "./ownership.ts";

/** Where an image is looked up, without asking any registry. */
export interface ImageLookup {
  find(image: string, signal?: AbortSignal): Promise<ImageInfo>;
}

/** Whether a caller may know of an image: what is nobody's build is everybody's. */
export function maySee(principal: Principal, image: ImageInfo): boolean {
  return !image.isBuilt || principal.scopes.includes("admin") || isOwner(principal, image.labels);
}

/**
 * Somebody else's build does not exist for a caller, and cannot be told from none. Only names that a build can have are
 * looked up; other images are everybody's, and cost nothing here.
 */
export async function refuseForeignImage(
  images: ImageLookup,
  principal: Principal,
  image: string | undefined,
): Promise<void> {
  if (image === undefined || principal.scopes.includes("admin")) return;
  // An engine takes any beginning of an id for the image.
  if (!isOwnImage(image) && !/^(sha256:)?[0-9a-f]+$/.test(image)) return;
  const found = await images.find(image).catch((thrown: unknown) => {
    if (isAidoError(thrown, "IMAGE_NOT_FOUND")) return undefined;
    throw thrown;
  });
  if (found !== undefined && !maySee(principal, found)) throw noImage(image);
}

export function noImage(image: string): AidoError {
  return new AidoError("IMAGE_NOT_FOUND", `There is no image ${JSON.stringify(image.slice(0, 200))} here`, {
    hint: "GET /api/images lists them.",
    details: { image: image.slice(0, 200) },
  });
}
