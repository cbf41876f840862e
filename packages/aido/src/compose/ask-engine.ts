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
  const [{ toEngineAddress }, { askFirst }] = await Promise.all([
    import("../drivers/docker/engine-address.ts"),
    import("../drivers/docker/first-questions.ts"),
  ]);
  const { options } = toEngineAddress(config.dockerHost, config.dockerCertPath);
  if (ahead !== undefined && options.socketPath === SYSTEM_SOCKET) return ahead;
  const answers = askFirst(options);
  // Questions leave with the next turns of the loop.
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  return answers;
}
