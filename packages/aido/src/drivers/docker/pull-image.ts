import { setTimeout as sleep } from "node:timers/promises";
import { AidoError, isAidoError } from "@aido/sdk/protocol";
import { isOwnImage } from "../../core/image/own-images.ts";
import { isSwarmImage } from "../../core/swarm/image/image-names.ts";
import { checkImageName } from "./check-image-name.ts";
import type { Engine } from "./engine.ts";
import { LABEL } from "./labels.ts";
import { PullProgress } from "./pull-progress.ts";
import { readLines } from "./read-lines.ts";
import { registryAuth } from "./registry-auth.ts";
import { clean, imageNotFound } from "./translate-docker-error.ts";

export interface PullOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((step: string) => void) | undefined;
}

const RETRY_DELAY_MS = 1_000;
/** A registry that sends nothing for this long is taken for dead. */
const SILENCE_MS = 120_000;
const NOT_FOUND =
  /manifest unknown|manifest for .* not found|pull access denied|repository .* not found|does not exist/i;

/** Makes the image available: at once when the engine has it, otherwise by a pull that is tried twice. */
export async function ensureImage(engine: Engine, image: string, options: PullOptions): Promise<void> {
  checkImageName(image);
  const labels = await findLabels(engine, image, options.signal);
  if (labels?.[LABEL.sandbox] !== undefined) throw sandboxFiles(image);
  if (labels !== undefined) return;
  if (isOwnImage(image) || isSwarmImage(image)) throw ownImageMissing(image);
  try {
    await pull(engine, image, options);
  } catch (first) {
    if (!isRetriable(first, options.signal)) throw first;
    options.onProgress?.(`Pulling ${image} failed, trying once more: ${(first as Error).message}`);
    await sleep(RETRY_DELAY_MS, undefined, options.signal === undefined ? {} : { signal: options.signal });
    await pull(engine, image, options);
  }
}

/** No registry has it, though one could be made to say so. */
function ownImageMissing(image: string): AidoError {
  return new AidoError("IMAGE_NOT_FOUND", `Image ${image} is not here; images of that name are built here`, {
    hint: "Build it with `aido image build`; `aido image list` shows what there is.",
    details: { image },
  });
}

function isRetriable(thrown: unknown, signal: AbortSignal | undefined): boolean {
  if (signal?.aborted === true) return false;
  return isAidoError(thrown, "IMAGE_PULL_FAILED") || isAidoError(thrown, "IMAGE_NOT_FOUND");
}

export async function hasImage(
  engine: Engine,
  image: string,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  return (await findLabels(engine, image, signal)) !== undefined;
}

/** Undefined when the engine does not have the image. */
async function findLabels(
  engine: Engine,
  image: string,
  signal: AbortSignal | undefined,
): Promise<Readonly<Record<string, string>> | undefined> {
  const action = { doing: `looking for image ${image}`, image };
  try {
    const { Config } = await engine.call(
      action,
      (abortSignal) => engine.docker.getImage(image).inspect({ abortSignal } as object),
      { signal },
    );
    return Config.Labels ?? {};
  } catch (thrown) {
    if (isAidoError(thrown, "IMAGE_NOT_FOUND")) return undefined;
    throw thrown;
  }
}

/** Whoever could name it as the image of a new sandbox would read what another has left. */
function sandboxFiles(image: string): AidoError {
  return new AidoError(
    "IMAGE_NOT_FOUND",
    `Image ${image} holds the files of a sandbox, and is for that alone`,
    {
      hint: "Start that sandbox again with `aido start`.",
      details: { image },
    },
  );
}

async function pull(engine: Engine, image: string, { signal, onProgress }: PullOptions): Promise<void> {
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), SILENCE_MS);
  const progress = new PullProgress(image, onProgress);
  try {
    const abortSignal = AbortSignal.any([silence.signal, ...(signal === undefined ? [] : [signal])]);
    const stream = await requestPull(engine, image, abortSignal);
    for await (const line of readLines(stream)) {
      timer.refresh();
      progress.take(line);
    }
    abortSignal.throwIfAborted();
    if (progress.error !== undefined) throw new Error(progress.error);
    if (!progress.finished) throw new Error("the engine broke off");
  } catch (thrown) {
    if (signal?.aborted === true) throw signal.reason;
    throw toPullError(thrown, image, silence.signal.aborted);
  } finally {
    clearTimeout(timer);
  }
}

async function requestPull(
  engine: Engine,
  image: string,
  signal: AbortSignal,
): Promise<NodeJS.ReadableStream> {
  const authconfig = await registryAuth(image);
  const { name, tag } = splitTag(image);
  return engine.call({ doing: `pulling image ${image}`, image, code: "IMAGE_PULL_FAILED" }, () =>
    engine.docker.createImage(authconfig as never, { fromImage: name, tag, abortSignal: signal }),
  );
}

/** Without a tag the engine would pull every tag there is. */
export function splitTag(image: string): { name: string; tag: string } {
  const digest = image.indexOf("@");
  if (digest >= 0) return { name: image.slice(0, digest), tag: image.slice(digest + 1) };
  const colon = image.lastIndexOf(":");
  if (colon > image.lastIndexOf("/")) return { name: image.slice(0, colon), tag: image.slice(colon + 1) };
  return { name: image, tag: "latest" };
}

function toPullError(thrown: unknown, image: string, silent: boolean): AidoError {
  const known = isAidoError(thrown);
  if (known && thrown.code !== "IMAGE_PULL_FAILED" && thrown.code !== "IMAGE_NOT_FOUND") return thrown;
  const cause = known ? (thrown.cause ?? thrown) : thrown;
  const told = clean(cause instanceof Error ? cause.message : String(cause)).replace(
    /^\(HTTP code \d+\) [^-]* - /,
    "",
  );
  if (!silent && NOT_FOUND.test(told)) return imageNotFound(image, { doing: "pulling" }, cause);
  const reason = silent ? `the registry sent nothing for ${SILENCE_MS / 1000} s` : told;
  return new AidoError("IMAGE_PULL_FAILED", `Image ${image} could not be pulled: ${reason}`, {
    hint: `Check the network and the registry, then try \`docker pull ${image}\`. Or use this machine's own programs: add \`--driver local\`.`,
    details: { image },
    cause,
  });
}
