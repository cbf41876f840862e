import type { Aido } from "@aido/sdk";
import { AidoError } from "@aido/sdk/protocol";
import type { Config } from "../config/config.ts";

/** Core in this process, or a server when one is named. */
export async function openBackend(config: Config, onProgress: (step: string) => void): Promise<Aido> {
  if (config.server !== undefined) {
    throw new AidoError("UNSUPPORTED", "This aido cannot use a server yet", {
      hint: "Leave --server away (and unset AIDO_URL) to use this machine.",
      details: { server: config.server },
    });
  }
  const [{ openAido }, { makeLogger }] = await Promise.all([
    import("../compose.ts"),
    import("../log/make-logger.ts"),
  ]);
  return await openAido({ config, logger: makeLogger(config), onProgress });
}
