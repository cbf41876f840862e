import { connect } from "node:net";
import { AidoError, toAidoError } from "@aido/sdk/protocol";
import type { Config } from "../config/config.ts";
import { searchPath } from "../config/process-config.ts";
import type { DataDir } from "../core/data-dir.ts";
import type { Driver, DriverCapabilities } from "../core/driver/driver.ts";
import type { FirstAnswers } from "../drivers/docker/first-questions.ts";
import { findAgent } from "./find-agent.ts";
import { scopeOf } from "./scope.ts";

/** How long an engine may take to say that it is there, when the choice is ours. */
const PING_LIMIT_MS = 1500;

export interface DriverContext {
  readonly config: Config;
  readonly dataDir: DataDir;
  readonly onProgress?: ((step: string) => void) | undefined;
  readonly answers?: FirstAnswers | undefined;
}

/** The driver that is named, or with `auto` the one that has the sandbox, else Docker when it answers, else the local one. */
export async function chooseDriver(
  context: DriverContext,
  dockerSilence: Promise<string | undefined>,
  having: () => Promise<string | undefined> = async () => undefined,
): Promise<Driver> {
  const { driver } = context.config;
  if (driver === "docker") return await openDocker(context);
  if (driver === "local") return await openLocal(context);
  const has = await having();
  if (has === "docker") return await openDocker(context);
  if (has === "local") return await openLocal(context);
  const silence = await dockerSilence;
  return silence === undefined ? await openDocker(context) : await openLocal(context, silence);
}

export async function openDocker({ config, dataDir, answers }: DriverContext): Promise<Driver> {
  const { DockerDriver } = await import("../drivers/docker/docker-driver.ts");
  const open = (host: string | undefined) =>
    new DockerDriver({
      host,
      certPath: config.dockerCertPath,
      answers,
      scope: scopeOf(dataDir.root),
      agentPath: findAgent(config.agentPath),
      runDir: (sandboxId) => dataDir.run(sandboxId),
      hostsFile: dataDir.hosts,
    });
  if (config.dockerHosts.length === 0) return open(config.dockerHost);
  const { DockerEngines } = await import("../drivers/docker/engines/docker-engines.ts");
  const { toEngineAddress } = await import("../drivers/docker/engine-address.ts");
  const hosts = [...new Set(config.dockerHosts)];
  return new DockerEngines({
    engines: hosts.map((host) => {
      const { text, local } = toEngineAddress(host, config.dockerCertPath);
      return { address: text, local, driver: open(host) };
    }),
    places: dataDir.engines,
  });
}

/** `silence` is why Docker was not taken: told when the local driver cannot run either. */
export async function openLocal(
  { config, dataDir, onProgress }: DriverContext,
  silence?: string,
): Promise<Driver> {
  const { LocalDriver } = await import("../drivers/local/local-driver.ts");
  class FallbackDriver extends LocalDriver {
    override async capabilities(signal?: AbortSignal): Promise<DriverCapabilities> {
      try {
        return await super.capabilities(signal);
      } catch (thrown) {
        throw silence === undefined ? thrown : noDriver(silence, thrown);
      }
    }
  }
  return new FallbackDriver({
    root: `${dataDir.root}/local`,
    scope: scopeOf(dataDir.root),
    agentPath: findAgent(config.agentPath),
    searchPath: searchPath(),
    onProgress,
  });
}

/** Undefined when an engine answers. One line on a socket: the engine's library takes longer to load than this. */
export async function whyDockerIsSilent(config: Config): Promise<string | undefined> {
  // Several are named on purpose too, and one that answers is enough.
  if (config.dockerHosts.length > 0) return undefined;
  const { toEngineAddress } = await import("../drivers/docker/engine-address.ts");
  const { text, options } = toEngineAddress(config.dockerHost, config.dockerCertPath);
  // Engines behind TLS and ssh are named on purpose; whether they answer is seen when they are used.
  if (options.protocol !== "http") return undefined;
  const { socketPath, host, port } = options;
  const where = socketPath === undefined ? { host: String(host), port: Number(port) } : { path: socketPath };
  const silent = (why: string) => `Docker at ${text} does not answer: ${why}`;
  return await new Promise((resolve) => {
    const socket = connect(where);
    const end = (answer: string | undefined) => {
      clearTimeout(limit);
      socket.destroy();
      resolve(answer);
    };
    const limit = setTimeout(() => end(silent(`nothing within ${PING_LIMIT_MS} ms`)), PING_LIMIT_MS);
    socket.on("connect", () =>
      socket.write("GET /_ping HTTP/1.1\r\nHost: docker\r\nConnection: close\r\n\r\n"),
    );
    socket.on("data", (data) => {
      const status = data.toString("latin1").split("\r\n", 1)[0] ?? "";
      end(
        /^HTTP\/1\.\d 200\b/.test(status)
          ? undefined
          : silent(`it says ${JSON.stringify(status.slice(0, 60))}`),
      );
    });
    socket.on("error", (error) => end(silent(error.message)));
    socket.on("close", () => end(silent("it closed the connection")));
  });
}

function noDriver(silence: string, thrown: unknown): AidoError {
  const local = toAidoError(thrown);
  return new AidoError(
    "RUNTIME_UNAVAILABLE",
    `${silence}; and the local driver cannot run here: ${local.message}`,
    {
      hint: `Start Docker, for example with \`sudo systemctl start docker\`.${local.hint === undefined ? "" : ` Or: ${local.hint}`}`,
      cause: thrown,
    },
  );
}
