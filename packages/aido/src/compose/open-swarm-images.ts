import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { AidoError } from "@aido/sdk/protocol";
import type { Config } from "../config/config.ts";
import type { SwarmImages } from "../core/swarm/image/swarm-images.ts";
import { adapterBundlePath } from "./adapter-bundle-path.ts";
import { keepOutOfGit } from "./keep-out-of-git.ts";
import { makeDirectory } from "./make-directory.ts";
import { refuseCarried } from "./refuse-carried.ts";

export interface OpenSwarmImages {
  readonly config: Config;
  /** The user's: git and what fetches packages go by it. None of it reaches an image. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Another program in place of the adapter. */
  readonly adapter?: string | undefined;
}

/** The images of swarms on this machine's engine. */
export async function openSwarmImages({
  config,
  env,
  adapter,
}: OpenSwarmImages): Promise<SwarmImages & AsyncDisposable> {
  const [{ BuiltSwarmImages }, { openDocker }, { DataDir }] = await Promise.all([
    import("../core/swarm/image/built-swarm-images.ts"),
    import("./choose-driver.ts"),
    import("../core/data-dir.ts"),
  ]);
  if (config.driver === "local") {
    throw new AidoError("UNSUPPORTED", "The local driver has no images, and a swarm's workers run in them", {
      hint: "Use Docker for that: add `--driver docker`.",
    });
  }
  const dataDir = new DataDir(config.dataDir);
  // What is made is marked as this directory's, by the name that it has once it exists.
  await refuseCarried(dataDir.root);
  await makeDirectory(dataDir.root);
  keepOutOfGit(dataDir.root);
  const driver = await openDocker({ config, dataDir });
  const images = new BuiltSwarmImages({
    driver,
    sources: {
      directory: findSources(),
      adapter: () => adapter ?? adapterBundlePath(),
      cache: join(env["XDG_CACHE_HOME"] || join(env["HOME"] || homedir(), ".cache"), "aido"),
      env,
    },
    limits: config.images,
  });
  return {
    ensureBase: (request) => images.ensureBase(request),
    ensureProject: (request) => images.ensureProject(request),
    [Symbol.asyncDispose]: () => driver.close(),
  };
}

/** In a clone the files themselves, elsewhere the copies that the build puts beside the compiled code. */
function findSources(): string {
  const places = ["../../../../images/swarm-base", "../swarm-base"];
  const candidates = places.map((path) => fileURLToPath(new URL(path, import.meta.url)));
  const found = candidates.find((path) => existsSync(join(path, "Dockerfile")));
  if (found !== undefined) return found;
  throw new AidoError(
    "RUNTIME_UNAVAILABLE",
    `The files of the swarm's images are missing: there is no ${candidates[1]}`,
    {
      hint: "Build them with `npm run build`.",
    },
  );
}
