import { resolve } from "node:path";
import { AidoError } from "@aido/sdk/protocol";
import type { BaseGround, EnsuredImage, EnsuredProject } from "../../core/swarm/image/swarm-images.ts";
import type { CliContext } from "../context.ts";
import { formatBytes } from "../output/format.ts";
import { note, printResult } from "../output/print.ts";
import { printable } from "../output/printable.ts";
import { interruptible } from "./interrupt.ts";

export interface SwarmImageOptions {
  baseOnly?: boolean;
  from?: string;
  claude?: boolean;
  force?: boolean;
}

/** Makes the images that a swarm of this project needs, or says that they are up to date. */
export async function buildSwarmImage(
  context: CliContext,
  directory: string | undefined,
  options: SwarmImageOptions,
): Promise<number> {
  if (options.baseOnly && directory !== undefined) {
    throw new AidoError(
      "VALIDATION_ERROR",
      "The base is the same for every project: --base-only takes no directory",
      {
        hint: "Leave the directory out, or --base-only to make the project's image as well.",
      },
    );
  }
  const ground = toGround(options.from);
  const { claude, force } = options;
  return await interruptible(context, async (signal) => {
    const common = { ground, claude, force, signal, onProgress: context.progress.show };
    const image = await context.withSwarmImages(async (images) =>
      options.baseOnly
        ? await images.ensureBase(common)
        : await images.ensureProject({ ...common, project: resolve(context.cwd, directory ?? ".") }),
    );
    context.progress.clear();
    await tell(context, image);
    return 0;
  });
}

async function tell(context: CliContext, image: EnsuredImage | EnsuredProject): Promise<void> {
  await printResult(
    context,
    { ...image, checksum: image.checksum ?? null },
    () => `${printable(image.image)}\n`,
  );
  const size = formatBytes(image.bytes);
  if ("leftOut" in image) {
    for (const path of image.leftOut) await note(context, `left out: ${printable(path)}`);
    const parts = image.madeFrom.length > 0 ? ` from ${image.madeFrom.map(printable).join(", ")}` : "";
    await note(context, image.rebuilt ? `Built${parts}, ${size}.` : `Up to date, ${size}.`);
    return;
  }
  await note(context, image.rebuilt ? `Built, ${size}.` : `Up to date, ${size}.`);
}

function toGround(from: string | undefined): BaseGround | undefined {
  if (from === undefined) return undefined;
  return from === "debian" ? { kind: "debian" } : { kind: "image", image: from };
}
