import { openAido } from "../../src/compose.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import { QUIET, settingsOf } from "./death-settings.ts";

/**
 * Does one step with a sandbox. Kills itself, as with kill -9, before or after the named change that is made to the
 * driver or the store; says how many there were otherwise.
 */
const [dataDir = "", driver = "", agentPath = "", id = "", action = "", dieAt = "", s3 = ""] =
  process.argv.slice(2);
const { config } = loadConfig(settingsOf(dataDir, driver, agentPath, s3));
const aido = await openAido({ config, logger: QUIET });
let steps = 0;
const step = () => {
  if (String(steps++) === dieAt) process.kill(process.pid, "SIGKILL");
};
const CHANGES = ["commit", "create", "remove", "removeImage", "start", "stop", "transition", "update"];
for (const part of [aido.driver, aido.store.sandboxes] as unknown as Record<string, unknown>[]) {
  for (const name of CHANGES) {
    const real = part[name];
    if (typeof real !== "function") continue;
    part[name] = async (...args: unknown[]) => {
      step();
      const result = await real.apply(part, args);
      step();
      return result;
    };
  }
}
if (action === "stop") await aido.sandboxes.stop(id, { graceMs: 0 });
else if (action === "start") await aido.sandboxes.start(id);
else if (action === "destroy") await aido.sandboxes.destroy(id);
else await aido.gc.collect();
process.stdout.write(`${steps}\n`);
await aido.close();
