import { chmodSync } from "node:fs";
import { join } from "node:path";
import { openStore } from "../compose.ts";
import { type Backup, createBackup } from "../core/backup/create-backup.ts";
import { type Restored, restoreBackup } from "../core/backup/restore-backup.ts";
import { moveMount, settleRestored } from "../core/backup/settle-restored.ts";
import { DataDir } from "../core/data-dir.ts";
import { beginScope } from "./scope.ts";

export interface BackupSettings {
  dataDir: string;
  file: string;
  version: string;
  now: Date;
}

/** Safe while servers and commands use the data directory. */
export async function backUp(settings: BackupSettings): Promise<Backup> {
  const dataDir = new DataDir(settings.dataDir);
  const copyDatabase = async (copy: string) => {
    const store = await openStore(dataDir.database);
    try {
      store.copyTo(copy);
    } finally {
      await store.close();
    }
    chmodSync(copy, 0o600);
  };
  const { file, version: aidoVersion, now } = settings;
  return await createBackup({ dataDir, file, copyDatabase, aidoVersion, now });
}

export async function restore({ dataDir: root, file, now }: BackupSettings): Promise<Restored> {
  const dataDir = new DataDir(root);
  return await restoreBackup({
    file,
    dataDir,
    settle: async (moved) => {
      beginScope(moved.to);
      const { settleRestoredLocal } = await import("../drivers/local/settle-restored.ts");
      settleRestoredLocal(join(moved.to, "local"), (mount) => moveMount(mount, moved), now);
      const store = await openStore(dataDir.database);
      try {
        return await settleRestored(store, moved, now);
      } finally {
        await store.close();
      }
    },
  });
}
