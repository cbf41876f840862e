import { openAido } from "../../src/compose.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import { S3Store } from "../../src/objects/s3/s3-store.ts";
import { QUIET, settingsOf } from "./death-settings.ts";

/**
 * Does one step with a sandbox. Kills itself, as with kill -9, before or after the named change that is made to the
 * driver, the store or the S3 server; says how many there were otherwise.
 */
const [dataDir = "", driver = "", agentPath = "", id = "", action = "", dieAt = "", s3 = ""] =
  process.argv.slice(2);
const { config } = loadConfig(settingsOf(dataDir, driver, agentPath, s3));
const aido = await openAido({ config, logger: QUIET });
let steps = 0;
const step = () => {
  if (String(steps++) === dieAt) process.kill(process.pid, "SIGKILL");
};
// Longer ago than any sandbox of this test may be unused.
if (action === "reap") await aido.store.sandboxes.update(id, { lastActivityAt: new Date(0) });
if (action === "expire") await aido.store.sandboxes.update(id, { expiresAt: new Date(0) });
const CHANGES = ["commit", "create", "put", "remove", "removeImage", "start", "stop", "transition", "update"];
const parts = [aido.driver, aido.store.sandboxes, S3Store.prototype] as unknown as Record<string, unknown>[];
for (const part of parts) {
  for (const name of CHANGES) {
    const real = part[name];
    if (typeof real !== "function") continue;
    part[name] = async function (this: unknown, ...args: unknown[]) {
      step();
      const result = await real.apply(this, args);
      step();
      return result;
    };
  }
}
if (action === "stop") await aido.sandboxes.stop(id, { graceMs: 0 });
else if (action === "start") await aido.sandboxes.start(id);
else if (action === "destroy") await aido.sandboxes.destroy(id);
else if (action === "reap" || action === "expire") await aido.reaper.reap();
else await aido.gc.collect();
process.stdout.write(`${steps}\n`);
await aido.close();
