import { AidoError, isAidoError } from "@aido/sdk/protocol";
import { tarEnd } from "../history/tar-writer.ts";
import { encodeManifest, type SnapshotManifest } from "./manifest.ts";
import type { SandboxTrees } from "./sandbox-trees.ts";
import { type ArchiveInfo, TarReader } from "./tar-reader.ts";

export interface PackOptions {
  readonly trees: SandboxTrees;
  /** Paths inside; undefined for what is left out. */
  readonly workspace: string | undefined;
  readonly state: string | undefined;
  readonly about: Pick<SnapshotManifest, "sandboxId" | "image" | "workdir" | "createdAt">;
  /** Of the files, before compression; 0 means no limit. */
  readonly maxBytes: number;
}

/** The plain bytes of a snapshot: the workspace's archive, the state's, and the manifest's. Always all three. */
export async function* packSnapshot(options: PackOptions): AsyncGenerator<Uint8Array, void, undefined> {
  const workspace = yield* pack(options, options.workspace);
  const hasOther = workspace !== null;
  const state = yield* pack(options, options.state, hasOther);
  yield encodeManifest({ ...options.about, workspace, state });
}

async function* pack(
  { trees, maxBytes }: PackOptions,
  root: string | undefined,
  mayBeMissing = false,
): AsyncGenerator<Uint8Array, ArchiveInfo | null, undefined> {
  if (root === undefined) {
    yield tarEnd();
    return null;
  }
  let bytes = 0;
  await using reader = new TarReader(trees.pack(root));
  const archive = reader.archive();
  try {
    for (;;) {
      const next = await archive.next();
      if (next.done === true) {
        // The tool's own end says whether it could read everything.
        await reader.end();
        return next.value;
      }
      bytes += next.value.byteLength;
      if (maxBytes > 0 && bytes > maxBytes) throw tooLarge(maxBytes);
      yield next.value;
    }
  } catch (thrown) {
    if (!mayBeMissing || bytes > 0 || !isAidoError(thrown, "FILE_NOT_FOUND")) throw thrown;
    yield tarEnd();
    return null;
  }
}

function tooLarge(maxBytes: number): AidoError {
  return new AidoError(
    "PAYLOAD_TOO_LARGE",
    `The files are larger than the ${maxBytes} bytes a snapshot may have`,
    {
      hint: "Remove what need not be kept, or raise AIDO_SNAPSHOT_MAX_SIZE.",
    },
  );
}
