import { scopeOf } from "../../src/compose/scope.ts";
import { wire } from "../../src/compose/wire.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import { searchPath } from "../../src/config/process-config.ts";
import { DataDir } from "../../src/core/data-dir.ts";
import type { Driver } from "../../src/core/driver/driver.ts";
import type { Store } from "../../src/core/store/store.ts";
import { LocalDriver } from "../../src/drivers/local/local-driver.ts";
import { StreamLogger } from "../../src/log/stream-logger.ts";
import { SqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";

/**
 * One life of a sandbox: create, stop, start, destroy. Kills itself, as with kill -9, at the step that is named: a
 * step is the beginning or the end of one call of the driver or the store. Says how many there were otherwise.
 */
const [root = "", agentPath = "", dieAt = ""] = process.argv.slice(2);
let steps = 0;

function step(): void {
  if (String(steps++) === dieAt) process.kill(process.pid, "SIGKILL");
}

/** Every call counts as two steps; what a part returns is counted as well. */
function counted<T extends object>(part: T): T {
  return new Proxy(part, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value === "object" && value !== null) return counted(value);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        step();
        const result: unknown = Reflect.apply(value, target, args);
        return result instanceof Promise ? result.finally(step) : result;
      };
    },
  });
}

const dataDir = new DataDir(root);
const store: Store = counted(new SqliteStore(dataDir.database));
const options = { root: `${root}/local`, scope: scopeOf(root), agentPath, searchPath: searchPath() };
const driver: Driver = counted(new LocalDriver(options));
const logger = new StreamLogger({
  level: "silent",
  format: "json",
  write: () => undefined,
  now: () => new Date(),
});
const { config } = loadConfig({ env: {}, cwd: root, flags: { dataDir: root } });
const aido = await wire({ config, logger, actor: "test" }, { driver, store, dataDir });
const { id } = await aido.sandboxes.create({ ttlMs: 60_000 });
await aido.sandboxes.stop(id, { graceMs: 0 });
await aido.sandboxes.start(id);
await aido.sandboxes.destroy(id);
process.stdout.write(`${steps}\n`);
await aido.close();
