import type { Config } from "../config/config.ts";
import type { Logger } from "../core/logger.ts";
import { StreamLogger } from "./stream-logger.ts";

/** To standard error, as configured. */
export function makeLogger(config: Pick<Config, "logLevel" | "logFormat">): Logger {
  const isText = config.logFormat === "text" || (config.logFormat === "auto" && process.stderr.isTTY);
  return new StreamLogger({
    level: config.logLevel,
    format: isText ? "text" : "json",
    write: (line) => process.stderr.write(line),
    now: () => new Date(),
  });
}
