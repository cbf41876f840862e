import { AidoError } from "@aido/sdk/protocol";

/** The first file of a backup. */
export interface BackupManifest {
  format: "aido-backup";
  version: 1;
  aidoVersion: string;
  createdAt: string;
  /** Where the data directory was; paths below it are on record. */
  root: string;
}

export const MANIFEST = "manifest.json";

export function readManifest(text: string, file: string): BackupManifest {
  let manifest: Partial<BackupManifest> = {};
  try {
    manifest = JSON.parse(text) as Partial<BackupManifest>;
  } catch {
    // Said below.
  }
  if (manifest.format !== "aido-backup" || typeof manifest.root !== "string") {
    throw new AidoError("VALIDATION_ERROR", `${file} is not a backup made by aido`);
  }
  if (manifest.version !== 1) {
    throw new AidoError(
      "STORE_TOO_NEW",
      `${file} was made by a newer version of aido (${manifest.aidoVersion})`,
      {
        hint: "Update aido.",
      },
    );
  }
  return manifest as BackupManifest;
}
