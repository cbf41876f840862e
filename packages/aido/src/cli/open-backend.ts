import { AidoError } from "@aido/sdk/protocol";
import type { Backend, GlobalOptions } from "./context.ts";

/** Core in this process, or a server when one is named. */
export async function openBackend(
  globals: GlobalOptions,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Backend> {
  const server = globals.server ?? env["AIDO_URL"];
  if (server !== undefined && server !== "") {
    throw new AidoError("UNSUPPORTED", "This aido cannot use a server yet", {
      hint: "Leave --server away (and unset AIDO_URL) to use this machine.",
      details: { server },
    });
  }
  throw new AidoError("UNSUPPORTED", "not yet");
}
