import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ServerProcess } from "./server-process.ts";

/** A real image registry on 127.0.0.1. */
export async function startRegistry(): Promise<ServerProcess> {
  return await ServerProcess.start({
    name: "registry",
    argv: async (port, directory) => {
      const config = join(directory, "config.yml");
      await writeFile(
        config,
        `version: 0.1
log: { level: error }
storage: { filesystem: { rootdirectory: ${join(directory, "data")} } }
http: { addr: "127.0.0.1:${port}" }
`,
      );
      return ["docker-registry", "serve", config];
    },
    answers: async (url) => (await fetch(`${url}/v2/`).catch(() => undefined))?.ok === true,
  });
}
