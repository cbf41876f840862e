import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { AidoError } from "@aido/sdk/protocol";

/** The program that a worker's image has at /opt/aimi/acp-adapter: one file, which needs Node and git and nothing else. */
export function adapterBundlePath(): string {
  // The build puts it beside the compiled code, which is also where sources find it.
  const places = ["../acp-adapter.cjs", "../../dist/acp-adapter.cjs"];
  const candidates = places.map((path) => fileURLToPath(new URL(path, import.meta.url)));
  const found = candidates.find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw new AidoError("RUNTIME_UNAVAILABLE", `The swarm's adapter is missing: there is no ${candidates[0]}`, {
    hint: "Build it with `npm run build`.",
  });
}
