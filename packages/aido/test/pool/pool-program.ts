import { setTimeout as sleep } from "node:timers/promises";
import { openAido } from "../../src/compose.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import { StreamLogger } from "../../src/log/stream-logger.ts";
import { openPool } from "./open-pool.ts";

/** A server's pool without the server: says one line when it is full, and waits to be killed. */
const [root = "", driver = "", image = "", agentPath = "", size = ""] = process.argv.slice(2);
const { config } = loadConfig({
  env: { XDG_CONFIG_HOME: "/nowhere", DOCKER_HOST: process.env["DOCKER_HOST"] },
  cwd: "/",
  flags: { driver, dataDir: root, defaultImage: image, agentPath },
});
const logger = new StreamLogger({
  level: "silent",
  format: "json",
  write: () => undefined,
  now: () => new Date(),
});
const aido = await openAido({ config, logger });
const pool = await openPool(aido, image, Number(size));
while (pool.state()[0]?.ready !== Number(size)) await sleep(10);
process.stdout.write("full\n");
setInterval(() => undefined, 60_000);
