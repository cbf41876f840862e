import { AidoError } from "@aido/sdk/protocol";
import { tarEnd, tarMember } from "../history/tar-writer.ts";
import type { ArchiveInfo } from "./tar-reader.ts";

const NAME = "aido-snapshot.json";
const VERSION = 1;
/** Far more than one needs; an object may be anything. */
export const MAX_MANIFEST_BYTES = 64 * 1024;
const BLOCK = 512;

/** What a snapshot says of itself. It comes last, because only then it is known. */
export interface SnapshotManifest {
  readonly version: number;
  readonly sandboxId: string;
  readonly image: string;
  readonly workdir: string;
  readonly createdAt: string;
  /** Null for what was left out. */
  readonly workspace: ArchiveInfo | null;
  readonly state: ArchiveInfo | null;
}

/** As an archive of its own after the others, so that `tar` alone can unpack a snapshot and list this with `-i`. */
export function encodeManifest(manifest: Omit<SnapshotManifest, "version">): Buffer {
  const content = Buffer.from(`${JSON.stringify({ version: VERSION, ...manifest }, undefined, 2)}\n`);
  return Buffer.concat([...tarMember(NAME, "100644", content, new Date(manifest.createdAt)), tarEnd()]);
}

/** From the bytes of that archive. */
export function parseManifest(archive: Buffer): SnapshotManifest {
  // The text begins at a block and is the only brace at the beginning of one.
  let at = 0;
  while (at < archive.length && archive[at] !== 0x7b) at += BLOCK;
  const end = archive.lastIndexOf("}");
  let value: unknown;
  try {
    value = JSON.parse(archive.toString("utf8", at, end + 1));
  } catch (cause) {
    throw broken("its manifest cannot be read", cause);
  }
  const manifest = value as Partial<SnapshotManifest>;
  if (typeof manifest !== "object" || manifest === null) throw broken("its manifest cannot be read");
  if (manifest.version !== VERSION) {
    throw new AidoError(
      "UNSUPPORTED",
      `The snapshot is of version ${String(manifest.version)}; this aido knows ${VERSION}`,
      {
        hint: "Restore it with the aido that made it, or a newer one.",
      },
    );
  }
  const texts = [manifest.sandboxId, manifest.image, manifest.workdir, manifest.createdAt];
  if (texts.some((text) => typeof text !== "string")) throw broken("its manifest has gaps");
  return manifest as SnapshotManifest;
}

/** What came through must be what was packed. A hash that was not asked for is that of the whole object. */
export function checkArchive(
  name: string,
  claimed: ArchiveInfo | null | undefined,
  found: ArchiveInfo,
): void {
  if (claimed === null && found.entries === 0) return;
  const isSame = found.sha256 === undefined || claimed?.sha256 === found.sha256;
  if (isSame && claimed?.bytes === found.bytes && claimed.entries === found.entries) return;
  throw broken(`its ${name} is not what was packed`);
}

export function broken(why: string, cause?: unknown): AidoError {
  return new AidoError("OBJECT_BROKEN", `The snapshot is damaged: ${why}`, {
    hint: "Restore another one; nothing was replaced.",
    cause,
  });
}
