import { AidoError } from "@aido/sdk/protocol";
import { ALIAS_PREFIX, LANGUAGE_IMAGES, languageImage } from "../image/aliases.ts";

/** Short names become images; anything else is an image reference and used as it is. */
export function resolveImage(image: string): string {
  if (image.startsWith(ALIAS_PREFIX)) {
    const language = image.slice(ALIAS_PREFIX.length).split(":")[0] ?? "";
    const resolved = languageImage(language);
    if (resolved !== undefined) return resolved;
    throw new AidoError("IMAGE_NOT_FOUND", `There is no image for ${ALIAS_PREFIX}${printable(language)}`, {
      hint: `Known are ${Object.keys(LANGUAGE_IMAGES).join(", ")}; or name an image such as python:3.12-slim.`,
    });
  }
  if (Object.hasOwn(LANGUAGE_IMAGES, image)) return LANGUAGE_IMAGES[image] ?? image;
  if (!/^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,511}$/.test(image)) {
    throw new AidoError("VALIDATION_ERROR", `"${printable(image)}" is not the name of an image`, {
      hint: "An image is named like python:3.12-slim or registry.example/team/image@sha256:….",
      details: { field: "image" },
    });
  }
  return image;
}

function printable(text: string): string {
  return text.slice(0, 100).replace(/[^\x20-\x7e]/g, "?");
}
