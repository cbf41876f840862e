import type { Driver, DriverCapabilities } from "../driver/driver.ts";
import { PROFILE_DEFAULTS } from "./profiles.ts";
import { resolveImage } from "./resolve-image.ts";

/** The default: an image with agents in it, used where the engine has it. Aido needs nothing of it. */
const WITH_AGENTS = "ghcr.io/tangle-network/sidecar:latest";
const HOST = "host";

export interface SidecarImageOptions {
  /** As somebody has set it, be it to the default. */
  image?: string | undefined;
  /** What sandboxes of every profile are made from, when that is configured. */
  defaultImage?: string | undefined;
}

/** The image of a sidecar sandbox that names none. A driver without images gives the host's programs. */
export async function sidecarImage(
  driver: Pick<Driver, "hasImage">,
  capabilities: DriverCapabilities,
  options: SidecarImageOptions,
): Promise<string> {
  const plain = PROFILE_DEFAULTS.sidecar.image;
  const chosen = options.image ?? options.defaultImage;
  const candidates = chosen === undefined ? [WITH_AGENTS, plain] : [resolveImage(chosen)];
  for (const image of candidates) if (await driver.hasImage(image)) return image;
  if (!capabilities.images) return HOST;
  return chosen ?? plain;
}
