// Starts a sandbox with the built driver and then waits to be killed: `node start-sandbox.mjs OPTIONS SPEC` (JSON).
import { LocalDriver } from "../../dist/drivers/local/local-driver.js";

const [options, spec] = process.argv.slice(2).map((text) => JSON.parse(text));
const driver = new LocalDriver(options);
await driver.create(spec);
await driver.start(spec.sandboxId);
process.stdout.write("started\n");
setInterval(() => undefined, 60_000);
