import { join } from "node:path";
import type { Logger } from "../../src/core/logger.ts";

const ignore = () => undefined;
export const QUIET: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore, child: () => QUIET };

/** Every collection moves everything by one tier. Objects go to a directory, or to the S3 server that answers there. */
export function settingsOf(dataDir: string, driver: string, agentPath: string, s3 = "") {
  return {
    env: {
      XDG_CONFIG_HOME: "/nowhere",
      DOCKER_HOST: process.env["DOCKER_HOST"],
      SANDBOX_GC_HOT_RETENTION: "0",
      SANDBOX_GC_WARM_RETENTION: "0",
      SANDBOX_GC_COLD_RETENTION: "0",
      SANDBOX_SNAPSHOT_AUTO_COMMIT: "true",
      AIDO_REAPER_SNAPSHOT: "true",
      AIDO_REAPER_BUSY_CPUS: "0",
      ...(s3 === ""
        ? { SANDBOX_SNAPSHOT_DESTINATION_PREFIX: `file://${join(dataDir, "objects")}/` }
        : {
            SANDBOX_SNAPSHOT_DESTINATION_PREFIX: "s3://snapshots/kept/",
            AWS_ENDPOINT_URL_S3: s3,
            AWS_ACCESS_KEY_ID: "S3RVER",
            AWS_SECRET_ACCESS_KEY: "S3RVER",
          }),
    },
    cwd: dataDir,
    flags: { dataDir, driver, agentPath },
  };
}
