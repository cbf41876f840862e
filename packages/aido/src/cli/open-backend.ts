import type { Aido } from "@aido/sdk";
import type { FirstAnswers } from "../compose/ask-engine.ts";
import type { Config } from "../config/config.ts";

/** Core in this process, or a server when one is named. */
export async function openBackend(
  config: Config,
  options: {
    onProgress: (step: string) => void;
    launches?: boolean;
    sandbox?: string | undefined;
    ahead?: FirstAnswers | undefined;
  },
): Promise<Aido> {
  if (config.server !== undefined) return openServerBackend(config, config.server);
  const answers = options.launches === true ? await askEarly(config, options.ahead) : undefined;
  const [{ openAido }, { makeLogger }] = await Promise.all([
    import("../compose.ts"),
    import("../log/make-logger.ts"),
  ]);
  return await openAido({ config, logger: makeLogger(config), ...options, answers });
}

async function askEarly(config: Config, ahead: FirstAnswers | undefined) {
  const { askEngine } = await import("../compose/ask-engine.ts");
  return await askEngine(config, ahead);
}

async function openServerBackend(config: Config, url: string): Promise<Aido> {
  const { HttpAido } = await import("@aido/sdk");
  const { requestTimeoutMs } = config;
  return new HttpAido({ url, apiKey: config.apiKey?.reveal(), requestTimeoutMs });
}
