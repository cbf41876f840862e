import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { openSwarmImages } from "../../src/compose/open-swarm-images.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import type { SwarmImages } from "../../src/core/swarm/image/swarm-images.ts";
import { docker } from "../backends/docker-cli.ts";
import { OwnEngine } from "../backends/own-engine.ts";

/** Keys that a user has around; no image may have them. */
export const KEYS = { ANTHROPIC_API_KEY: "sk-ant-canary-7f3a", GITHUB_TOKEN: "ghp_canary_91bc" };

/**
 * The images of swarms on an engine of their own: their names are the same for everybody, so on the machine's engine tests
 * would take each other's. Its containers reach no network, so all that a build takes was fetched before.
 */
export class ImagesBed implements AsyncDisposable {
  readonly engine: OwnEngine;
  readonly directory: string;
  readonly images: SwarmImages & AsyncDisposable;
  /** For the command line, with the same cache and data. */
  readonly env: Record<string, string>;

  private constructor(
    engine: OwnEngine,
    directory: string,
    images: SwarmImages & AsyncDisposable,
    env: Record<string, string>,
  ) {
    this.engine = engine;
    this.directory = directory;
    this.images = images;
    this.env = env;
  }

  static async start(engineConfig: object = {}): Promise<ImagesBed> {
    const engine = await OwnEngine.start(engineConfig);
    const directory = mkdtempSync(join(tmpdir(), "aido-swarm-images-"));
    const { AIDO_TEST_CACHE, XDG_CACHE_HOME, PATH = "" } = process.env;
    const cache = AIDO_TEST_CACHE ?? join(XDG_CACHE_HOME ?? join(homedir(), ".cache"), "aido-test");
    mkdirSync(join(directory, "cache"));
    symlinkSync(cache, join(directory, "cache/aido"));
    const env = {
      ...{ ...KEYS, PATH, HOME: directory, GIT_CONFIG_NOSYSTEM: "1" },
      ...{ XDG_CACHE_HOME: join(directory, "cache"), DOCKER_HOST: engine.host },
      AIDO_DATA_DIR: join(directory, "data"),
    };
    const { config } = loadConfig({ env, cwd: directory, configPath: undefined, flags: {} });
    const images = await openSwarmImages({ config, env });
    return new ImagesBed(engine, directory, images, env);
  }

  async docker(...args: string[]): Promise<string> {
    return await docker(args, { host: this.engine.host });
  }

  /** What a command says in a container of the image. */
  async run(image: string, command: string): Promise<string> {
    return await this.docker("run", "--rm", "--network", "none", image, "/bin/bash", "-c", command);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.images[Symbol.asyncDispose]();
    await this.engine[Symbol.asyncDispose]();
    rmSync(this.directory, { recursive: true, force: true });
  }
}
