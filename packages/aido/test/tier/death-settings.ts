import { join } from "node:path";
import type { Logger } from "../../src/core/logger.ts";

const ignore = () => undefined;
export const QUIET: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore, child: () => QUIET };

/** Every collection moves everything by one tier. */
export function settingsOf(dataDir: string, driver: string, agentPath: string) {
  return {
    env: {
      XDG_CONFIG_HOME: "/nowhere",
      DOCKER_HOST: process.env["DOCKER_HOST"],
      SANDBOX_GC_HOT_RETENTION: "0",
      SANDBOX_GC_WARM_RETENTION: "0",
      SANDBOX_GC_COLD_RETENTION: "0",
      SANDBOX_SNAPSHOT_AUTO_COMMIT: "true",
      SANDBOX_SNAPSHOT_DESTINATION_PREFIX: `file://${join(dataDir, "objects")}/`,
    },
    cwd: dataDir,
    flags: { dataDir, driver, agentPath },
  };
}
