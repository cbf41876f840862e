import { AidoError } from "@aido/sdk/protocol";
import type { Driver, DriverCapabilities } from "../driver/driver.ts";
import { PROFILE_DEFAULTS } from "./profiles.ts";
import { resolveImage } from "./resolve-image.ts";

/** The default: an image with agents in it, used where the engine has it. Aido needs nothing of it. */
const WITH_AGENTS = "ghcr.io/tangle-network/sidecar:latest";
const HOST = "host";

export interface SidecarImageOptions {
  /** As configured; one that the engine lacks is fetched, unless `pullImage` is false. */
  image?: string | undefined;
  /** What sandboxes of every profile are made from, when that is configured. */
  defaultImage?: string | undefined;
  pullImage?: boolean | undefined;
}

/** The image of a sidecar sandbox that names none. A driver without images gives the host's programs. */
export async function sidecarImage(
  driver: Pick<Driver, "hasImage">,
  capabilities: DriverCapabilities,
  options: SidecarImageOptions,
): Promise<string> {
  const plain = PROFILE_DEFAULTS.sidecar.image;
  const chosen = options.image === WITH_AGENTS ? options.defaultImage : options.image;
  const candidates = chosen === undefined ? [WITH_AGENTS, plain] : [resolveImage(chosen)];
  for (const image of candidates) if (await driver.hasImage(image)) return image;
  if (!capabilities.images) return HOST;
  const image = chosen ?? plain;
  if (options.pullImage !== false) return image;
  throw new AidoError(
    "IMAGE_NOT_FOUND",
    `The engine has no image ${image}, and aido is told not to pull it`,
    {
      hint: `\`docker pull ${image}\`, or set SIDECAR_PULL_IMAGE=true.`,
      details: { image },
    },
  );
}
