import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { AidoError } from "@aido/sdk/protocol";

/** The supervisor's binary: the build puts it beside the compiled code, which is also where sources find it. */
export function findAgent(configured: string | undefined): string {
  const candidates =
    configured === undefined
      ? ["../aido-agent", "../../dist/aido-agent"].map((path) =>
          fileURLToPath(new URL(path, import.meta.url)),
        )
      : [configured];
  const found = candidates.find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw new AidoError("RUNTIME_UNAVAILABLE", `The supervisor is missing: there is no ${candidates[0]}`, {
    hint: "Build it with `npm run build`, or name it with AIDO_AGENT_PATH.",
  });
}
