import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { AidoError, isAidoError } from "@aido/sdk/protocol";
import type { BuildOptions, ImageBuild } from "../../core/driver/driver-images.ts";
import { buildContext } from "./build-context.ts";
import { BuildProgress } from "./build-progress.ts";
import type { Engine } from "./engine.ts";
import { readLines } from "./read-lines.ts";

const CONFLICT = 409;
const REMOVE_DEADLINE_MS = 15_000;
const REMOVE_POLL_MS = 50;

/** The engine's own builder, given nothing but the context. What it made before it failed is removed. */
export async function buildImage(engine: Engine, build: ImageBuild, options: BuildOptions): Promise<void> {
  const { signal, onProgress } = options;
  const progress = new BuildProgress(onProgress);
  try {
    const stream = await requestBuild(engine, build, signal);
    for await (const line of readLines(stream)) progress.take(line);
    signal?.throwIfAborted();
    if (progress.error !== undefined) throw new Error(progress.error);
    if (!progress.finished) throw new Error("the engine broke off");
  } catch (thrown) {
    await removeLayers(engine, progress.made);
    if (signal?.aborted === true) throw signal.reason;
    if (isAidoError(thrown) && thrown.code !== "INTERNAL_SERVER_ERROR") throw thrown;
    throw toBuildError(thrown, progress);
  }
}

function requestBuild(
  engine: Engine,
  build: ImageBuild,
  signal: AbortSignal | undefined,
): Promise<NodeJS.ReadableStream> {
  const request = {
    t: build.tag,
    dockerfile: build.dockerfilePath ?? "Dockerfile",
    labels: build.labels,
    memory: build.memoryBytes,
    memswap: build.memoryBytes,
    networkmode: build.network === "none" ? "none" : "default",
    rm: true,
    forcerm: true,
    version: "1",
    abortSignal: signal,
  };
  return engine.call(
    { doing: "building the image" },
    () =>
      engine.docker.buildImage(
        Readable.from(buildContext(build)) as NodeJS.ReadableStream,
        request as object,
      ),
    { signal },
  );
}

/**
 * The last layer holds those before it. One that has a name, or is part of another image, is not the build's to remove. An
 * engine that is still ending the command of an aborted build refuses, and is asked until that is done.
 */
async function removeLayers(engine: Engine, made: readonly string[]): Promise<void> {
  const last = made.at(-1);
  if (last === undefined) return;
  const image = engine.docker.getImage(last);
  const isGone = () =>
    engine.call({ doing: "removing layers" }, async (abortSignal) => {
      const { RepoTags, RepoDigests } = await image.inspect();
      if ((RepoTags?.length ?? 0) > 0 || (RepoDigests?.length ?? 0) > 0) return true;
      return image.remove({ abortSignal } as object).then(
        () => true,
        (thrown: { statusCode?: number }) => thrown.statusCode !== CONFLICT,
      );
    });
  const deadline = performance.now() + REMOVE_DEADLINE_MS;
  while (!(await isGone().catch(() => true)) && performance.now() < deadline) await sleep(REMOVE_POLL_MS);
}

function toBuildError(thrown: unknown, progress: BuildProgress): AidoError {
  const told = thrown instanceof Error ? thrown.message : String(thrown);
  const isMemory = /returned a non-zero code: 137/.test(told);
  return new AidoError("IMAGE_BUILD_FAILED", `The build failed: ${told.replace(/^.* failed: /, "")}`, {
    hint: isMemory
      ? "The command was killed, most likely for want of memory: images.buildMemory sets how much it has."
      : "The end of what it said is in details.log.",
    details: { log: progress.tail() },
    cause: thrown,
  });
}
