/**
 * What aido builds is named below this, a registry that does not exist: such a name is never pulled, and no build can take
 * the name of an image that others use.
 */
export const OWN_IMAGES = "aido.local/";

export function isOwnImage(image: string): boolean {
  return image.startsWith(OWN_IMAGES);
}
