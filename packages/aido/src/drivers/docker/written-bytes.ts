import { directoryBytes } from "../../core/hostile-files/directory-bytes.ts";
import type { Place } from "./container-index.ts";
import type { Engine } from "./engine.ts";

/**
 * What a container has in its own layer. Where that is a directory which this process may read, its blocks count;
 * otherwise the engine's word does, to which a file with holes is as large as it looks.
 */
export async function writtenBytes(
  engine: Engine,
  { sandboxId, containerId }: Place,
  signal?: AbortSignal,
): Promise<number | undefined> {
  const container = engine.docker.getContainer(containerId);
  const inspect = (size: boolean) =>
    engine.call(
      { doing: "measuring what the sandbox has written", sandboxId },
      (abortSignal) => container.inspect({ abortSignal, size } as object),
      { signal },
    );
  const layer = engine.address.local ? upperDirectory(await inspect(false)) : undefined;
  const seen = layer === undefined ? undefined : await directoryBytes(layer, signal).catch(() => undefined);
  signal?.throwIfAborted();
  if (seen?.isWhole === true) return seen.bytes;
  return ((await inspect(true)) as { SizeRw?: number }).SizeRw;
}

function upperDirectory({ GraphDriver: driver }: { GraphDriver?: { Name: string; Data?: unknown } }) {
  const data = driver?.Data as { UpperDir?: unknown } | null | undefined;
  return driver?.Name === "overlay2" && typeof data?.UpperDir === "string" ? data.UpperDir : undefined;
}
