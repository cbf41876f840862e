import type { Config } from "../config/config.ts";
import type { FirstAnswers } from "../drivers/docker/first-questions.ts";
import { SYSTEM_SOCKET } from "../drivers/docker/system-socket.ts";

export type { FirstAnswers };

/**
 * The Docker engine that is likely to be used, asked before anything else is loaded: that takes as long as its answers.
 * Undefined when there is not one engine to ask. What the machine's own one was asked ahead of this is not asked again.
 */
export async function askEngine(config: Config, ahead?: FirstAnswers): Promise<FirstAnswers | undefined> {
  if (config.driver === "local" || config.dockerHosts.length > 0) return undefined;
  if (ahead !== undefined && (await isSystemEngine(config))) return ahead;
  const [{ toEngineAddress }, { askFirst }] = await Promise.all([
    import("../drivers/docker/engine-address.ts"),
    import("../drivers/docker/first-questions.ts"),
  ]);
  const { options } = toEngineAddress(config.dockerHost, config.dockerCertPath);
  const answers = askFirst(options);
  // Questions leave with the next turns of the loop.
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  return answers;
}

/** Whether the machine's own engine is the one, and the only one, that the settings name. */
export async function isSystemEngine({ dockerHost, dockerHosts, dockerCertPath }: Config): Promise<boolean> {
  const { toEngineAddress } = await import("../drivers/docker/engine-address.ts");
  const { options } = toEngineAddress(dockerHost, dockerCertPath);
  return dockerHosts.length === 0 && options.socketPath === SYSTEM_SOCKET;
}
