import { AidoError } from "@aido/sdk/protocol";
import type { Driver } from "../driver/driver.ts";
import type { SandboxRecord } from "../store/store.ts";
import { PROFILE_DEFAULTS } from "./profiles.ts";
import type { SandboxDeps } from "./sandbox-deps.ts";

type Deps = Pick<SandboxDeps, "driver" | "pullSidecarImages">;

/** Pulls a record's image unless the machine has it, or it is a sidecar sandbox's and those are not to be pulled. */
export async function provideImage(
  deps: Deps,
  record: SandboxRecord,
  options: Parameters<Driver["ensureImage"]>[1],
): Promise<void> {
  await refusePull(deps, record);
  await deps.driver.ensureImage(record.image, options);
}

/** Also asked before there is a record, so that what cannot be started is not made. */
export async function refusePull(
  { driver, pullSidecarImages }: Deps,
  { profile, image }: Pick<SandboxRecord, "profile" | "image">,
): Promise<void> {
  if (pullSidecarImages !== false || !PROFILE_DEFAULTS[profile].hasSidecar) return;
  if (await driver.hasImage(image)) return;
  throw new AidoError("IMAGE_NOT_FOUND", `There is no image ${image}, and aido is told not to pull it`, {
    hint: `\`docker pull ${image}\`, or set SIDECAR_PULL_IMAGE=true.`,
    details: { image },
  });
}
